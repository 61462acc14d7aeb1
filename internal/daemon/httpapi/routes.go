package httpapi

import (
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	s.open = map[string]bool{}
	for _, rt := range s.table() {
		pattern := rt.method + " " + rt.pattern()
		s.open[pattern] = rt.role == anybody
		mux.HandleFunc(pattern, s.guard(rt.role, rt.serve))
	}
	mux.HandleFunc("/", s.guard(forge.RoleViewer, s.noRoute))
	return mux
}

// noRoute answers what no route does: the path may have other methods.
func (s *Server) noRoute(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := s.mux.Handler(other); pattern != "/" && pattern != "" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.refuse(w, r, api.NewProblem(api.CodeMethod, "it has %s", strings.Join(allowed, ", ")))
		return
	}
	s.refuse(w, r, api.NewProblem(api.CodeNoRoute, "everything is below %s", api.Base))
}

// call turns a function into a handler: bounded in time, its value written as JSON. Without a value there is no body.
func (s *Server) call(status int, do func(r *http.Request) (any, error)) endpoint {
	return endpoint{status, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, bodyLimit(r))
		value, err := do(r)
		switch {
		case err != nil:
			s.fail(w, r, err)
		case value == nil:
			w.WriteHeader(status)
		default:
			answered := choice{status, value}
			if c, ok := value.(choice); ok {
				answered = c
			}
			s.reply(w, r, answered.status, answered.value)
		}
	}}
}

// choice is an answer with a status of its own.
type choice struct {
	status int
	value  any
}

func bodyLimit(r *http.Request) int64 {
	if r.URL.Path == api.Base+"/runs" {
		return api.MaxRunBytes
	}
	return api.MaxRequestBytes
}

// stream turns a function into a handler that may go on for long. An error before its first write is answered as a problem;
// one behind it cuts the stream.
func (s *Server) stream(do func(w http.ResponseWriter, r *http.Request) error) endpoint {
	long := s.content(do).serve
	return endpoint{http.StatusOK, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead {
			s.refuse(w, r, api.NewProblem(api.CodeMethod, "a stream has no head of its own"))
			return
		}
		long(w, r)
	}}
}

// json makes a function that may take long, and whose value is the answer, one for content.
func (s *Server) json(do func(r *http.Request) (any, error)) func(w http.ResponseWriter, r *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		value, err := do(r)
		if err != nil {
			return err
		}
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin))
		s.reply(w, r, http.StatusOK, value)
		return nil
	}
}

// content is stream for what has a head as well.
func (s *Server) content(do func(w http.ResponseWriter, r *http.Request) error) endpoint {
	return endpoint{http.StatusOK, func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 { // net/http would hold the stream back until the body has come
			turnAway(w)
			s.refuse(w, r, api.NewProblem(api.CodeMalformed, "a stream is asked for without a body"))
			return
		}
		select {
		case s.streams <- struct{}{}:
			defer func() { <-s.streams }()
		default:
			s.refuse(w, r, api.NewProblem(api.CodeUnavailable, "%d streams are open already", maxStreams))
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // reading only serves to see that the reader has gone
		ctx, cancel := context.WithCancelCause(r.Context())
		var stopper sync.WaitGroup
		stopper.Go(func() {
			select {
			case <-s.stop:
				cancel(errStopping)
			case <-ctx.Done():
			}
		})
		defer stopper.Wait()
		defer cancel(nil)
		if err := do(w, r.WithContext(ctx)); err != nil {
			if a, ok := w.(*answer); ok && a.status != 0 {
				if problemOf(err) == nil && context.Cause(ctx) == nil {
					s.log.Error("a stream broke", telemetry.KeyPath, r.URL.Path, telemetry.KeyError, err)
				}
				panic(http.ErrAbortHandler)
			}
			s.fail(w, r, err)
		}
	}}
}

// decode reads the body of a request.
func decode(r *http.Request, into any) error {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != api.TypeJSON {
		return api.NewProblem(api.CodeMediaType, "send it with Content-Type: %s", api.TypeJSON)
	}
	data, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	return api.Decode(data, into)
}

// limit reads the size of a page.
func limit(r *http.Request) (int, error) {
	text := r.URL.Query().Get("limit")
	if text == "" {
		return api.DefaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > api.MaxPage {
		return 0, api.NewProblem(api.CodeMalformed, "limit %q is no number within 1 and %d", text, api.MaxPage)
	}
	return n, nil
}

// pageOf reads the size of a page and where it begins, of a list whose cursors are numbers.
func pageOf(r *http.Request) (n int, cursor uint64, err error) {
	if n, err = limit(r); err == nil {
		cursor, err = number(r, "cursor")
	}
	return n, cursor, err
}

// number reads a parameter that is a number; absent is zero.
func number(r *http.Request, name string) (uint64, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, api.NewProblem(api.CodeMalformed, "%s %q is no number", name, text)
	}
	return n, nil
}

// flag reads a parameter that is true or false; absent is false.
func flag(r *http.Request, name string) (bool, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return false, nil
	}
	on, err := strconv.ParseBool(text)
	if err != nil {
		return false, api.NewProblem(api.CodeMalformed, "%s %q is neither true nor false", name, text)
	}
	return on, nil
}

// countRequests makes the counter of requests by route.
func (s *Server) countRequests() {
	if s.cfg.Metrics == nil {
		return
	}
	var patterns []string
	for _, rt := range s.table() {
		patterns = append(patterns, rt.method+" "+rt.pattern())
	}
	s.counts = s.cfg.Metrics.Counter("forgeyard_http_requests_total", "Requests that were answered, by route and kind of status.",
		telemetry.Label{Name: "route", Values: patterns}, telemetry.Label{Name: "status", Values: []string{"2xx", "3xx", "4xx", "5xx"}})
}

func (s *Server) count(r *http.Request, status int) {
	if s.counts != nil {
		s.counts.Inc(r.Pattern, strconv.Itoa(status/100)+"xx")
	}
}
