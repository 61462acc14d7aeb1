package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// fileProblem tells what is wrong with a pipeline file, each thing with its place.
func fileProblem(e *control.PipelineError) *api.Problem {
	p := api.NewProblem(api.CodeInvalid, "the pipeline %s cannot be run", e.File)
	for _, f := range e.Found.Wrong() {
		p.Problems = append(p.Problems, api.Wrong{
			Path: e.File, What: f.What, Hint: f.Hint, Line: f.At.Line, Column: f.At.Column, Kind: string(f.Code),
		})
	}
	return p
}

// problemOf is the one place where errors become problems. What is not known is our fault: it is logged in full by the
// caller and told in general.
func problemOf(err error) *api.Problem {
	var problem *api.Problem
	var early control.Unsupported
	var found forge.Problems
	var file *control.PipelineError
	var unknown *pipeline.UnknownJobError
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &problem):
		return problem
	case accessProblem(err) != nil:
		return accessProblem(err)
	case errors.As(err, &early):
		return api.Invalid(api.CodeNotYet, "", forge.Problems(early))
	case errors.As(err, &found):
		return api.Invalid(api.CodeInvalid, "", found)
	case errors.As(err, &file):
		return fileProblem(file)
	case errors.As(err, &unknown):
		return api.Invalid(api.CodeInvalid, "", forge.Problems{{Path: "pipeline.jobs", What: unknown.Error()}})
	case errors.As(err, &tooLarge):
		return api.NewProblem(api.CodeTooLarge, "it may have %d bytes", tooLarge.Limit)
	case objectProblem(err) != nil:
		return objectProblem(err)
	case errors.Is(err, api.ErrMalformed):
		return api.NewProblem(api.CodeMalformed, "%v", err)
	case errors.Is(err, logs.ErrQuery):
		return api.NewProblem(api.CodeMalformed, "%v", err)
	case errors.Is(err, control.ErrKeyReused):
		return api.NewProblem(api.CodeIdempotency, "choose another key, or send the first request again")
	case errors.Is(err, control.ErrNoRetry), errors.Is(err, control.ErrRevoked), errors.Is(err, control.ErrConnected), errors.Is(err, access.ErrFull):
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

// objectProblem is problemOf for what the store of objects says.
func objectProblem(err error) *api.Problem {
	var mismatch *cas.MismatchError
	var corrupt *cas.CorruptError
	var wrong *cas.TreeError
	switch {
	case errors.Is(err, cas.ErrFull):
		return api.NewProblem(api.CodeNoRoom, "its disk or its store is full; make room on the daemon's disk and try again")
	case errors.As(err, &mismatch):
		return api.NewProblem(api.CodeDigest, "%v", mismatch)
	case errors.As(err, &corrupt):
		return api.NewProblem(api.CodeDamaged, "object %v; whoever has it can send it again", corrupt.Ref)
	case errors.As(err, &wrong):
		return api.NewProblem(api.CodeDamaged, "object %v is no tree, or not the one that it should be", wrong.Ref)
	case errors.Is(err, cas.ErrNotFound):
		return api.NewProblem(api.CodeNotFound, "there is no such object")
	case errors.Is(err, remote.ErrBusy), errors.Is(err, errYield):
		return api.NewProblem(api.CodeUnavailable, "another request is sending the same object; try again")
	case errors.Is(err, errBroke):
		return api.NewProblem(api.CodeUnavailable, "the body broke off or came too slowly; what has come of a large object is kept")
	case errors.Is(err, errStopping):
		return api.NewProblem(api.CodeUnavailable, "the daemon is stopping; try again in a few seconds")
	}
	return nil
}

// fail answers a request that was not carried out.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	p := problemOf(err)
	if ended := accessProblem(context.Cause(r.Context())); ended != nil {
		p = ended // what came of it is that whoever asks may ask no more
	}
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
