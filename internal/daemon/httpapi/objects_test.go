package httpapi

import (
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestTheStoreBehindHTTPPassesTheSuite(t *testing.T) {
	castest.Suite(t, func(t *testing.T) cas.Store { return newWorld(t).client.Objects("") })
}

// cutting is a road to a server, on which connections end after so many bytes to it, a number of times.
type cutting struct {
	url  string
	each int64
	left atomic.Int64 // until the next cut
	cuts atomic.Int64 // to come
	sent atomic.Int64
}

func (w *world) cutting(each, cuts int64) *cutting {
	w.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	c := &cutting{url: "http://" + l.Addr().String(), each: each}
	c.left.Store(each)
	c.cuts.Store(cuts)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
			if err != nil {
				_ = near.Close()
				continue
			}
			end := func() { _ = near.Close(); _ = far.Close() }
			all.Go(func() { _, _ = io.Copy(near, far); end() })
			all.Go(func() { _, _ = io.Copy(&toll{c, far}, near); end() })
		}
	})
	w.t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return c
}

// toll counts what goes to the server, and cuts.
type toll struct {
	*cutting
	to io.Writer
}

func (c *toll) Write(p []byte) (int, error) {
	c.sent.Add(int64(len(p)))
	if c.left.Add(-int64(len(p))) < 0 && c.cuts.Add(-1) >= 0 {
		c.left.Store(c.each)
		return 0, errors.New("cut")
	}
	return c.to.Write(p)
}

// TestALargeUploadThatIsCutGoesOn also holds that little is sent twice.
func TestALargeUploadThatIsCutGoesOn(t *testing.T) {
	w := newWorld(t)
	const size, cuts, mostTwice = 40 << 20, 3, 8 << 20
	road := w.cutting(9<<20, cuts)
	client, err := api.NewClient(road.url, api.Options{Token: forge.NewSecret([]byte(token))})
	w.must(err)
	t.Cleanup(client.Close)
	data := castest.Bytes(1, size)
	source := castest.NewMemory()
	ref := source.Add(data)
	w.must(cas.Copy(w.ctx, client.Objects(""), source, []digest.Ref{ref}))
	castest.Holds(t, w.objects.Project(forge.DefaultProject), ref, data)
	if left := road.cuts.Load(); left > 0 {
		t.Errorf("%d cuts were left", left)
	}
	if twice := road.sent.Load() - size; twice > cuts*mostTwice {
		t.Errorf("%d bytes were sent twice with %d cuts", twice, cuts)
	}
}

// TestAnotherProjectSeesNothing: threat S16, absent and forbidden look alike.
func TestAnotherProjectSeesNothing(t *testing.T) {
	w := newWorld(t)
	data := castest.Bytes(1, 1000)
	ref := digest.RefOf(data)
	w.must(w.client.Objects("ours").Put(w.ctx, ref, bytes.NewReader(data)))
	castest.Holds(t, w.client.Objects("ours"), ref, data)
	castest.Lacks(t, w.client.Objects("theirs"), ref)
	theirs := w.ask(http.MethodGet, api.Base+"/cas/"+ref.String()+"?project=theirs", "", "")
	nobodys := w.ask(http.MethodGet, api.Base+"/cas/"+digest.RefOf([]byte("x")).String()+"?project=theirs", "", "")
	a, b := body(t, theirs), body(t, nobodys)
	if theirs.StatusCode != http.StatusNotFound || nobodys.StatusCode != http.StatusNotFound || a != b {
		t.Errorf("%d %s, %d %s", theirs.StatusCode, a, nobodys.StatusCode, b)
	}
	response := w.ask(http.MethodGet, api.Base+"/cas/"+ref.String()+"?project=ours", "", "", "Range", "bytes=10-19")
	if got := body(t, response); response.StatusCode != http.StatusPartialContent || got != string(data[10:20]) {
		t.Errorf("a range is answered with %d and %d bytes", response.StatusCode, len(got))
	}
	for name, value := range map[string]string{"Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"} {
		if got := response.Header.Get(name); !strings.HasPrefix(got, value) {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestABatchThatLiesStoresWhatIsRight holds S19 too: what decodes to too much is refused, whatever it claims.
func TestABatchThatLiesStoresWhatIsRight(t *testing.T) {
	w := newWorld(t)
	good, bad := digest.RefOf([]byte("good")), digest.RefOf([]byte("bad?"))
	send := func(body, encoding string) *http.Response {
		header := []string{"Content-Type", api.TypeObjects}
		if encoding != "" {
			header = append(header, "Content-Encoding", encoding)
		}
		return w.ask(http.MethodPost, api.Base+"/cas:batch", "", body, header...)
	}
	answer := send(good.String()+"\ngood"+bad.String()+"\nevil", "")
	if text := body(t, answer); answer.StatusCode != http.StatusOK || !strings.Contains(text, string(api.CodeDigest)) {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
	castest.Holds(t, w.client.Objects(""), good, []byte("good"))
	castest.Lacks(t, w.client.Objects(""), bad)
	encoder, err := zstd.NewWriter(nil)
	w.must(err)
	bomb := string(encoder.EncodeAll(append([]byte(digest.RefOf(make([]byte, 1<<20)).String()+"\n"), make([]byte, 7<<20)...), nil))
	for name, test := range map[string]struct {
		body, encoding string
		status         int
	}{
		"a bomb":                        {bomb, api.EncodingZstd, http.StatusRequestEntityTooLarge},
		"bytes that are no zstd":        {"good", api.EncodingZstd, http.StatusBadRequest},
		"an encoding that nobody knows": {"good", "br", http.StatusUnsupportedMediaType},
		"no reference":                  {"good", "", http.StatusBadRequest},
		"an end in the middle":          {digest.RefOf([]byte("longer")).String() + "\nlong", "", http.StatusBadRequest},
		"too many bytes":                {strings.Repeat("x", api.MaxBatchBytes+1), "", http.StatusBadRequest},
	} {
		if answer := send(test.body, test.encoding); answer.StatusCode != test.status {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body(t, answer))
		}
	}
}

// TestABatchTravelsCompressed also where it compresses better than a daemon believes.
func TestABatchTravelsCompressed(t *testing.T) {
	w := newWorld(t)
	source := castest.NewMemory()
	total := 0
	for _, size := range []int{10, 300 << 10, 1 << 20} {
		source.Add(make([]byte, size))
		total += size
	}
	for i := range 100 {
		text := []byte(strings.Repeat("a line of source "+strconv.Itoa(i)+"\n", 500))
		source.Add(text)
		total += len(text)
	}
	road := w.cutting(1<<40, 0)
	client, err := api.NewClient(road.url, api.Options{Token: forge.NewSecret([]byte(token))})
	w.must(err)
	t.Cleanup(client.Close)
	w.must(cas.Copy(w.ctx, client.Objects(""), source, []digest.Ref{digest.RefOf(make([]byte, 1<<20))})) // nothing compresses better
	w.must(cas.Copy(w.ctx, client.Objects(""), source, source.Refs()))
	missing, err := w.client.Objects("").Missing(w.ctx, source.Refs())
	if err != nil || len(missing) > 0 {
		t.Errorf("%d are missing, %v", len(missing), err)
	}
	if sent := road.sent.Load(); sent > int64(total/10) {
		t.Errorf("%d bytes went over the road, of %d", sent, total)
	}
}

// TestAnUploadSaysWhereItGoesOn walks a large object by hand.
func TestAnUploadSaysWhereItGoesOn(t *testing.T) {
	w := newWorld(t)
	data := string(castest.Bytes(1, api.MaxBatchObject+5))
	ref := digest.RefOf([]byte(data))
	put := func(from int, text string) *http.Response {
		return w.ask(http.MethodPut, api.Base+"/cas/"+ref.String(), "", text,
			"Content-Type", api.TypeRawLog, api.HeaderUploadOffset, strconv.Itoa(from))
	}
	if r := put(0, data[:100]); r.StatusCode != http.StatusAccepted || r.Header.Get(api.HeaderUploadOffset) != "100" {
		t.Errorf("%d %v", r.StatusCode, r.Header)
	}
	if r := put(7, data[7:]); r.StatusCode != http.StatusConflict || r.Header.Get(api.HeaderUploadOffset) != "100" {
		t.Errorf("from elsewhere: %d %v", r.StatusCode, r.Header)
	}
	if r := w.ask(http.MethodHead, api.Base+"/cas/"+ref.String(), "", ""); r.StatusCode != http.StatusNotFound || r.Header.Get(api.HeaderUploadOffset) != "100" {
		t.Errorf("head: %d %v", r.StatusCode, r.Header)
	}
	if r := put(100, data[100:]); r.StatusCode != http.StatusOK || r.Header.Get(api.HeaderUploadComplete) != "?1" {
		t.Errorf("the rest: %d %v", r.StatusCode, r.Header)
	}
	castest.Holds(t, w.client.Objects(""), ref, []byte(data))
	wrong := digest.Ref{Digest: digest.Of([]byte("another")), Bytes: ref.Bytes}
	if r := w.ask(http.MethodPut, api.Base+"/cas/"+wrong.String(), "", data, "Content-Type", api.TypeRawLog); r.StatusCode != http.StatusUnprocessableEntity {
		t.Errorf("other bytes: %d", r.StatusCode)
	}
	castest.Lacks(t, w.client.Objects(""), wrong)
}

// TestARunNamesOnlyTreesThatItsProjectHolds.
func TestARunNamesOnlyTreesThatItsProjectHolds(t *testing.T) {
	w := newWorld(t)
	root, _ := castest.Tree(t, w.client.Objects("theirs"), map[string]string{"a": "b"})
	request := job("a")
	request.Spec.Inputs = []api.Input{{
		Mount: forge.SourceDir, Mode: "cow",
		Tree: api.Tree{Root: root.Root.String(), Files: root.Files, Bytes: api.Size(root.Bytes), Depth: root.Depth},
	}}
	_, err := w.client.Submit(w.ctx, &api.RunRequest{Jobs: []api.JobRequest{request}}, "")
	if p := w.problem(err); p.Code != api.CodeInvalid || len(p.Problems) != 1 || p.Problems[0].Path != "jobs[0].spec.inputs[0].tree" {
		t.Errorf("%+v", p)
	}
	castest.Tree(t, w.client.Objects(""), map[string]string{"a": "b"})
	w.submit(request)
	request.Spec.Inputs[0].Tree.Files++
	_, err = w.client.Submit(w.ctx, &api.RunRequest{Jobs: []api.JobRequest{request}}, "")
	if p := w.problem(err); p.Code != api.CodeInvalid {
		t.Errorf("of a tree that is another: %+v", p)
	}
}
