package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// problemOf is the one place where errors become problems. What is not known is our fault: it is logged in full by the
// caller and told in general.
func problemOf(err error) *api.Problem {
	var problem *api.Problem
	var early control.Unsupported
	var found forge.Problems
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &early):
		return api.Invalid(api.CodeNotYet, "", forge.Problems(early))
	case errors.As(err, &found):
		return api.Invalid(api.CodeInvalid, "", found)
	case errors.As(err, &tooLarge):
		return api.NewProblem(api.CodeTooLarge, "it may have %d bytes", tooLarge.Limit)
	case errors.Is(err, api.ErrMalformed):
		return api.NewProblem(api.CodeMalformed, "%v", err)
	case errors.Is(err, logs.ErrQuery):
		return api.NewProblem(api.CodeMalformed, "%v", err)
	case errors.Is(err, control.ErrKeyReused):
		return api.NewProblem(api.CodeIdempotency, "choose another key, or send the first request again")
	case errors.Is(err, control.ErrRevoked), errors.Is(err, control.ErrConnected):
		return api.NewProblem(api.CodeConflict, "%v", err)
	case errors.Is(err, store.ErrNotFound), errors.Is(err, logs.ErrForeign):
		return api.NewProblem(api.CodeNotFound, "there is no such thing, or no longer")
	case errors.Is(err, store.ErrExists):
		return api.NewProblem(api.CodeConflict, "the name is taken; choose another")
	case errors.Is(err, store.ErrInUse):
		return api.NewProblem(api.CodeConflict, "it still holds a lease; disable it and wait until its jobs have ended")
	case errors.Is(err, store.ErrUnknown):
		return api.NewProblem(api.CodeUnknownOutcome, "it may or may not have happened; look, or send the same request with the same key again")
	case errors.Is(err, store.ErrFull):
		return api.NewProblem(api.CodeUnavailable, "the daemon's disk is full; make room on it and try again")
	case errors.Is(err, store.ErrBusy), errors.Is(err, store.ErrClosed), errors.Is(err, store.ErrFailed), errors.Is(err, logs.ErrClosed):
		return api.NewProblem(api.CodeUnavailable, "the daemon is busy or about to restart; try again in a few seconds")
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return api.NewProblem(api.CodeUnavailable, "it took too long; try again")
	}
	return nil
}

// fail answers a request that was not carried out.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if p == nil {
		s.log.Error("a request failed", "method", r.Method, telemetry.KeyPath, r.URL.Path, telemetry.KeyError, err)
		p = api.NewProblem(api.CodeInternal, "the daemon's log says more")
	}
	s.refuse(w, r, p)
}

// refuse writes a problem.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	w.Header().Set("Content-Type", api.TypeProblem)
	if p.Status == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "2")
	}
	s.write(w, r, p.Status, p)
}

// reply writes an answer.
func (s *Server) reply(w http.ResponseWriter, r *http.Request, status int, body any) {
	w.Header().Set("Content-Type", api.TypeJSON)
	s.write(w, r, status, body)
}

func (s *Server) write(w http.ResponseWriter, r *http.Request, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic("httpapi: an answer cannot be written as JSON: " + err.Error())
	}
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	// An error here is the peer's, who will see that the answer is cut.
	_, _ = w.Write(append(text, '\n'))
}

func stack() string { return string(debug.Stack()) }
