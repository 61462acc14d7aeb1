package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"sync"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// logRequest is which part of a log is asked for, and how.
type logRequest struct {
	attempt forge.AttemptID
	from    logs.Place
	tail    int // lines; with from zero
	follow  bool
	raw     bool
	find    *logs.Query // nil: nothing is looked for
}

// readRequest reads the parameters of a request for a log.
func readRequest(r *http.Request) (q logRequest, err error) {
	from, err := firstFrame(r)
	if err != nil {
		return q, err
	}
	q.from.Seq = forge.LogSeq(from)
	tail, err := number(r, "tail")
	if err != nil {
		return q, err
	}
	if tail > logs.MaxTail {
		return q, api.NewProblem(api.CodeMalformed, "tail is at most %d lines", logs.MaxTail)
	}
	q.tail = int(tail)
	if q.follow, err = flag(r, "follow"); err != nil {
		return q, err
	}
	switch format := r.URL.Query().Get("format"); format {
	case "raw":
		q.raw = true
	case "", "events":
	default:
		return q, api.NewProblem(api.CodeMalformed, "format %q is neither events nor raw", clip(format))
	}
	if r.URL.Query().Has("q") {
		q.find, err = readQuery(r, q.from.Seq)
	}
	if q.find != nil && (q.follow || q.raw || q.tail > 0) {
		return q, api.NewProblem(api.CodeMalformed, "a search has no follow, no format and no tail")
	}
	return q, err
}

// firstFrame is from_seq, or what follows the last event that a reader has seen.
func firstFrame(r *http.Request) (uint64, error) {
	last := r.Header.Get(api.HeaderLastEventID)
	if last == "" {
		return number(r, "from_seq")
	}
	n, err := strconv.ParseUint(last, 10, 63)
	if err != nil {
		return 0, api.NewProblem(api.CodeMalformed, "%s %q is none that was given out", api.HeaderLastEventID, clip(last))
	}
	return n + 1, nil
}

// readQuery reads the parameters of a search.
func readQuery(r *http.Request, from forge.LogSeq) (*logs.Query, error) {
	query := r.URL.Query()
	q := &logs.Query{Text: query.Get("q"), From: logs.From(from)}
	var err error
	if q.IgnoreCase, err = flag(r, "ignore_case"); err != nil {
		return nil, err
	}
	if q.Limit, err = limit(r); err != nil {
		return nil, err
	}
	if after := query.Get("after"); after != "" {
		if q.From, err = logs.ParseCursor(after); err != nil {
			return nil, api.NewProblem(api.CodeMalformed, "after %q is none that was given out", clip(after))
		}
	}
	return q, nil
}

func (s *Server) logRequest(r *http.Request) (q logRequest, spec *forge.JobSpec, err error) {
	if q, err = readRequest(r); err != nil {
		return q, nil, err
	}
	err = s.cfg.Store.View(r.Context(), func(v *store.View) (err error) {
		if q.attempt, err = lookUp[forge.AttemptID](v, store.AttemptIDs, "attempt", r.PathValue("id")); err != nil {
			return err
		}
		a, err := v.Attempt(q.attempt)
		if err != nil {
			return err
		}
		job, err := v.Job(a.Authority.Job)
		if err != nil {
			return err
		}
		spec, err = specOf(v, &job)
		return err
	})
	return q, spec, err
}

// readLog streams a log, or answers with its output, or with what was found in it.
func (s *Server) readLog(w http.ResponseWriter, r *http.Request) error {
	q, spec, err := s.logRequest(r)
	if err != nil {
		return err
	}
	if q.find != nil {
		return s.searchLog(w, r, q)
	}
	if q.from.Seq == 0 && q.tail > 0 {
		if q.from, err = s.cfg.Logs.Tail(r.Context(), q.attempt, q.tail, q.raw); err != nil {
			return err
		}
	}
	if q.raw && !q.follow {
		return s.sendOutput(w, r, q)
	}
	if _, err := s.cfg.Logs.Info(r.Context(), q.attempt); err != nil {
		return err
	}
	if q.raw {
		e := newEvents(w, api.TypeRawLog)
		return s.frames(r.Context(), q, func(f forge.LogFrame) error {
			if f.Stream != forge.LogStdout && f.Stream != forge.LogStderr {
				return nil
			}
			return e.write(f.Bytes)
		})
	}
	e := newEvents(w, api.TypeEvents)
	return e.alive(r.Context(), func(ctx context.Context) error { return s.sendEvents(ctx, e, q, spec) })
}

// sendEvents writes a log as events.
func (s *Server) sendEvents(ctx context.Context, e *events, q logRequest, spec *forge.JobSpec) error {
	behind := lag{server: s, events: e, attempt: q.attempt, off: !q.follow}
	err := s.frames(ctx, q, func(f forge.LogFrame) error {
		if err := s.sendFrame(e, &f, spec); err != nil {
			return err
		}
		return behind.sent(ctx, &f)
	})
	if err != nil {
		return err
	}
	return s.sendEnd(ctx, e, q)
}

// errAttemptEnded ends the following of a log that nobody seals.
var errAttemptEnded = errors.New("the attempt has ended")

// frames passes the frames of a log on. It follows until the log is sealed or, since one of a lost attempt may never be,
// until the attempt has ended; then what is stored is all that there is.
func (s *Server) frames(ctx context.Context, q logRequest, visit func(forge.LogFrame) error) error {
	next := q.from.Seq
	each := func(f forge.LogFrame) error {
		if f.Seq == q.from.Seq { // of a tail, which begins within a frame
			f.Bytes = f.Bytes[min(q.from.Skip, len(f.Bytes)):]
		}
		if len(f.Bytes) > 0 {
			if err := visit(f); err != nil {
				return err
			}
		}
		next = f.Seq + 1
		return nil
	}
	if !q.follow {
		return s.cfg.Logs.Read(ctx, q.attempt, next, each)
	}
	following, cancel := context.WithCancelCause(ctx)
	var waiter sync.WaitGroup
	waiter.Go(func() {
		if s.attemptIs(following, q.attempt, overUnsealed) == nil {
			cancel(errAttemptEnded)
		}
	})
	err := s.cfg.Logs.Follow(following, q.attempt, next, each)
	cause := context.Cause(following)
	cancel(nil)
	waiter.Wait()
	if err != nil && errors.Is(cause, errAttemptEnded) && ctx.Err() == nil {
		return s.cfg.Logs.Read(ctx, q.attempt, next, each)
	}
	return err
}

// over and overUnsealed say whether an attempt has ended, and has ended with a log that nobody sealed.
func over(a *store.Attempt) bool         { return a.Authority.State.Ended() }
func overUnsealed(a *store.Attempt) bool { return over(a) && !a.Log.Sealed }

// attemptIs waits until something is true of an attempt.
func (s *Server) attemptIs(ctx context.Context, id forge.AttemptID, holds func(*store.Attempt) bool) error {
	changes := s.cfg.Store.Subscribe()
	defer changes.Close()
	for {
		var a store.Attempt
		err := s.cfg.Store.View(ctx, func(v *store.View) (err error) {
			a, err = v.Attempt(id)
			return err
		})
		if err != nil || holds(&a) {
			return err
		}
		for about := false; !about; {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-changes.C():
				c := changes.Take()
				about = c.All || slices.Contains(c.Attempts, id)
			}
		}
	}
}

// sendFrame writes a frame as an event.
func (s *Server) sendFrame(e *events, f *forge.LogFrame, spec *forge.JobSpec) error {
	seq, at := uint64(f.Seq), api.TimeOf(f.Time)
	if f.Stream != forge.LogStructured {
		return e.send(seq, api.EventOutput, api.OutputOf(seq, f.Stream.String(), at, f.Bytes))
	}
	event, err := s.cfg.Events(f.Bytes)
	if err != nil {
		// A newer agent may tell what this daemon does not know. The reader sees that something stood here.
		return e.send(seq, api.EventGap, api.LogGap{Seq: seq, Why: "an event that this daemon does not know"})
	}
	switch event := event.(type) {
	case forge.StepStarted:
		return e.send(seq, api.EventStepStarted, api.LogStep{Seq: seq, Step: event.Step, Name: stepName(spec, event.Step), At: at})
	case forge.StepFinished:
		result := stepOf(&event.Result, spec)
		return e.send(seq, api.EventStepFinished, api.LogStep{
			Seq: seq, Step: result.Index, Name: result.Name, At: at, Result: &result,
		})
	case forge.Annotation:
		return e.send(seq, api.EventAnnotation, api.LogNote{
			Seq: seq, Level: event.Level.String(), Text: event.Text, Step: event.Step, File: event.File, Line: event.Line, Column: event.Column, At: at,
		})
	case forge.Notice:
		return e.send(seq, api.EventNotice, api.LogNote{Seq: seq, Level: event.Level.String(), Text: event.Text, At: at})
	case forge.Gap:
		return e.send(seq, api.EventGap, api.LogGap{Seq: seq, Bytes: event.Bytes, Why: "more output than the log may have"})
	}
	return e.send(seq, api.EventGap, api.LogGap{Seq: seq, Why: "an event that this daemon does not know"})
}

// sendEnd writes the last event. A log is sealed a moment before its attempt ends: whoever follows waits for that.
func (s *Server) sendEnd(ctx context.Context, e *events, q logRequest) error {
	if q.follow {
		if err := s.attemptIs(ctx, q.attempt, over); err != nil {
			return err
		}
	}
	var end api.LogEnd
	err := s.cfg.Store.View(ctx, func(v *store.View) (err error) {
		end.Attempt, err = readAttempt(v, q.attempt)
		return err
	})
	if err != nil {
		return err
	}
	end.Complete = end.Attempt.Log.Sealed && !end.Attempt.Log.Closed
	return e.send(0, api.EventEnd, end)
}
