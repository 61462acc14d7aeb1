package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/program"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("net/http.(*persistConn).readLoop"), goleak.IgnoreTopFunction("net/http.(*persistConn).writeLoop"))
}

// A fake is a daemon whose answers a test writes.
type fake struct {
	*http.ServeMux
	server *httptest.Server

	mu       sync.Mutex
	requests []string
	answers  map[string]http.HandlerFunc
}

func newFake(t *testing.T) *fake {
	t.Helper()
	t.Chdir(t.TempDir()) // where there is no repository for a job to start from
	f := &fake{ServeMux: http.NewServeMux(), answers: map[string]http.HandlerFunc{}}
	f.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		f.requests = append(f.requests, r.Method+" "+strings.TrimPrefix(r.URL.Path, api.Base))
		f.mu.Unlock()
		f.ServeHTTP(w, r)
	}))
	t.Cleanup(f.server.Close)
	f.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, api.NewProblem(api.CodeNotFound, "nothing has this id"))
	})
	return f
}

// asked reports whether a request has come.
func (f *fake) asked(request string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		if r == request {
			return true
		}
	}
	return false
}

// serve answers a request, such as "GET /runs/{id}", from now on.
func (f *fake) serve(pattern string, answer http.HandlerFunc) {
	f.mu.Lock()
	_, known := f.answers[pattern]
	f.answers[pattern] = answer
	f.mu.Unlock()
	if known {
		return
	}
	method, path, _ := strings.Cut(pattern, " ")
	f.HandleFunc(method+" "+api.Base+path, func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		answer := f.answers[pattern]
		f.mu.Unlock()
		answer(w, r)
	})
}

// on answers a request with a value.
func (f *fake) on(pattern string, answer func(r *http.Request) any) {
	f.serve(pattern, func(w http.ResponseWriter, r *http.Request) {
		switch v := answer(r).(type) {
		case *api.Problem:
			refuse(w, v)
		case []api.Event:
			stream(w, v)
		case nil:
			w.WriteHeader(http.StatusNoContent)
		default:
			w.Header().Set("Content-Type", api.TypeJSON)
			_ = json.NewEncoder(w).Encode(v)
		}
	})
}

func refuse(w http.ResponseWriter, p *api.Problem) {
	w.Header().Set("Content-Type", api.TypeProblem)
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p)
}

func stream(w http.ResponseWriter, events []api.Event) {
	w.Header().Set("Content-Type", api.TypeEvents)
	for _, e := range events {
		fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Name, e.Data)
		_ = http.NewResponseController(w).Flush()
	}
}

func event(id int, name string, data any) api.Event {
	text, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return api.Event{ID: fmt.Sprint(id), Name: name, Data: text}
}

// nobody is a Local that must not be used, except that it finds an endpoint.
type nobody struct{ endpoint string }

func (n nobody) Find(string) string { return n.endpoint }

func (nobody) Run(context.Context, context.Context, cli.LocalOptions, func(context.Context, string) error) error {
	return errors.New("a daemon was started in this process")
}

func (nobody) Look(context.Context, cli.LocalOptions) (string, func() error, error) {
	return "", nil, nil
}

// A world is where a test runs commands.
type world struct {
	env   map[string]string
	stdin string
	local cli.Local
	ctx   context.Context
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{env: map[string]string{"HOME": t.TempDir()}, local: nobody{}, ctx: t.Context()}
}

func (f *fake) world(t *testing.T) *world {
	w := newWorld(t)
	w.env["FORGEYARD_SERVER"] = f.server.URL
	return w
}

// A result is what a command did.
type result struct {
	stdout, stderr string
	code           int
}

func (w *world) run(args ...string) result {
	var stdout, stderr bytes.Buffer
	env := cli.Env{
		Stdin: strings.NewReader(w.stdin), Stdout: &stdout, Stderr: &stderr, Version: "1.2.3", Local: w.local,
		Getenv: func(name string) string { return w.env[name] },
	}
	err := cli.Main(w.ctx, nil, env, args)
	var exit *program.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Err != nil) {
		fmt.Fprintf(&stderr, "forgeyard: %v\n", err)
	}
	return result{stdout: stdout.String(), stderr: stderr.String(), code: program.Code(err)}
}

// want fails the test unless the command ended with a code and said something on each output.
func (r result) want(t *testing.T, code int, stdout, stderr string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout, stdout) || !strings.Contains(r.stderr, stderr) {
		t.Errorf("code %d, want %d\nstdout: %s\n  want: %s\nstderr: %s\n  want: %s", r.code, code, r.stdout, stdout, r.stderr, stderr)
	}
}
