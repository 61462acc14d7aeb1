package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func serve(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c, err := NewClient(s.URL, Options{Token: forge.NewSecret([]byte("hush"))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestAProblemArrivesAsItWasSent(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hush" || r.Header.Get(HeaderIdempotencyKey) != "k" {
			t.Errorf("came with %v", r.Header)
		}
		w.WriteHeader(CodeInvalid.Status())
		_ = json.NewEncoder(w).Encode(Invalid(CodeInvalid, "jobs[0]", forge.Problems{{Path: "key", What: "is missing"}}))
	})
	_, err := c.Submit(t.Context(), &RunRequest{}, "k")
	var p *Problem
	if !errors.As(err, &p) || p.Code != CodeInvalid || p.Problems[0].Path != "jobs[0].key" {
		t.Fatalf("got %#v", err)
	}
	want := "The request is not valid: one of its values must be changed: jobs[0].key: is missing"
	if err.Error() != want {
		t.Errorf("reads %q", err)
	}
}

func TestADaemonThatIsNotThereIsUnreachable(t *testing.T) {
	c, err := NewClient("unix://"+filepath.Join(t.TempDir(), "no.sock"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Run(t.Context(), "x")
	var p *Problem
	if !errors.As(err, &p) || p.Code != CodeUnreachable {
		t.Errorf("got %v", err)
	}
}

func TestACancelledRequestEndsWithItsCause(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	c := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel(why)
		<-r.Context().Done()
	})
	if _, err := c.Run(ctx, "x"); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
}

func TestASocketIsSpokenToWithoutAToken(t *testing.T) {
	path := filepath.Join(t.TempDir(), "http.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"id":%q}`, r.URL.Path+r.Header.Get("Authorization"))
	})}}
	s.Start()
	defer s.Close()
	c, err := NewClient("unix://"+path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	run, err := c.Run(t.Context(), "a/b")
	if err != nil || run.ID != "/api/v1/runs/a/b" {
		t.Errorf("got %+v, %v", run, err)
	}
}

func TestATokenDoesNotTravelReadableToAnotherMachine(t *testing.T) {
	o := Options{Token: forge.NewSecret([]byte("hush"))}
	for _, endpoint := range []string{"http://ci.example.org", "http://192.0.2.1:7480"} {
		if _, err := NewClient(endpoint, o); err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	for _, endpoint := range []string{"http://127.0.0.1:1", "http://[::1]:1", "http://localhost:1", "https://ci.example.org"} {
		if _, err := NewClient(endpoint, o); err != nil {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
	for _, endpoint := range []string{"", "ci.example.org", "ftp://x", "http://", "http://x/y", "unix://x", "http://a:b@x", "http://%zz"} {
		if _, err := NewClient(endpoint, Options{}); err == nil {
			t.Errorf("%q is taken for an endpoint", endpoint)
		}
	}
}

func TestATokenFileIsReadWithoutItsLineEnd(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(" hush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := ReadToken(path)
	if err != nil || string(got.Reveal()) != "hush" {
		t.Errorf("read %q, %v", got.Reveal(), err)
	}
	two := path + "2"
	if err := os.WriteFile(two, []byte("hush\nhush\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{path + "x", filepath.Dir(path), os.DevNull, two} {
		if _, err := ReadToken(bad); err == nil {
			t.Errorf("%s is taken for a token", bad)
		}
	}
}

// A stream that breaks in the middle of an event is taken up behind the last whole one.
func TestABrokenLogGoesOnWhereItBroke(t *testing.T) {
	var asked, told []string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Query().Get("from_seq")+"/"+r.Header.Get(HeaderLastEventID))
		w.Header().Set("Content-Type", TypeEvents)
		switch len(asked) {
		case 1:
			fmt.Fprint(w, ": hello\n\nid: 5\nevent: output\ndata: {\"seq\":5,\ndata: \"text\":\"a\"}\n\nid: 6\nevent: output\ndata: {\"se")
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
			_ = json.NewEncoder(w).Encode(NewProblem(CodeUnavailable, "restarting"))
		default:
			fmt.Fprint(w, "id: 6\nevent: output\ndata: {\"seq\":6,\"text\":\"b\"}\n\nevent: end\ndata: {\"complete\":true}\n\n")
		}
	})
	c.options.Stream = func(broke error) { told = append(told, fmt.Sprint(broke)) }
	var got string
	for e, err := range c.Log(t.Context(), "A", LogOptions{From: 5, Follow: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Name == EventOutput {
			var o LogOutput
			if err := e.Decode(&o); err != nil {
				t.Fatal(err)
			}
			got += string(o.Data())
		}
	}
	if got != "ab" || strings.Join(asked, " ") != "5/ 5/5 5/5" {
		t.Errorf("read %q, asked %v", got, asked)
	}
	if len(told) != 2 || !strings.Contains(told[0], "broke off") || told[1] != "<nil>" {
		t.Errorf("told %q, want once that it broke and once that it goes on", told)
	}
}

func TestAStreamThatCannotBeHadEndsWithItsProblem(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(NewProblem(CodeNotFound, "no attempt"))
	})
	var errs []error
	for _, err := range c.Log(t.Context(), "A", LogOptions{}) {
		errs = append(errs, err)
	}
	var p *Problem
	if len(errs) != 1 || !errors.As(errs[0], &p) || p.Code != CodeNotFound {
		t.Errorf("got %v", errs)
	}
}

func TestOutputKeepsItsBytes(t *testing.T) {
	for _, data := range []string{"", "plain\n", "\xff\x00\xfe", "ä", "\xc3"} {
		text, err := json.Marshal(OutputOf(1, "stdout", nil, []byte(data)))
		if err != nil {
			t.Fatal(err)
		}
		var back LogOutput
		if err := json.Unmarshal(text, &back); err != nil || string(back.Data()) != data {
			t.Errorf("%q came back as %q, %v", data, back.Data(), err)
		}
	}
}

func TestEveryCodeHasAStatusAndATitle(t *testing.T) {
	for code := range titles {
		p := NewProblem(code, "x")
		if p.Status < 400 || p.Title == "" || p.Type != "urn:forgeyard:problem:"+string(code) {
			t.Errorf("%s: %+v", code, p)
		}
	}
	for code := range statuses {
		if titles[code] == "" {
			t.Errorf("%s has no title", code)
		}
	}
}
