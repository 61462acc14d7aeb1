package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
)

// Bounds of uploads. A sender that keeps to none of them loses its request, and may go on with another.
const (
	// maxUploads is how many requests may bring bodies with objects at a time, each with a buffer of copyBytes or a batch.
	maxUploads = 64
	// maxBatches is how many of these may be batches, each with api.MaxBatchBytes and a decoder in memory.
	maxBatches = 8
	// paceWithin is in which time paceBytes of a body must have come, or the rest of it.
	paceWithin = 30 * time.Second
	paceBytes  = 256 << 10
	copyBytes  = 256 << 10
)

// errYield ends an upload because the same sender has come again.
var errYield = errors.New("the upload goes on over another request")

// errBroke says that a body ended early or came too slowly.
var errBroke = errors.New("the body broke off")

// take turns a function that reads a large body into a handler: paced, bounded in number, ended when the server stops.
func (s *Server) take(slots chan struct{}, do func(w http.ResponseWriter, r *http.Request, in *intake) error) endpoint {
	return endpoint{http.StatusOK, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancelCause(r.Context())
		defer cancel(nil)
		r = r.WithContext(ctx)
		if err := s.enter(ctx, slots); err != nil {
			turnAway(w)
			s.fail(w, r, err)
			return
		}
		defer func() { <-slots }()
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
		in := newIntake(r, http.NewResponseController(w), cancel)
		defer in.end() // before the context ends: else it would end what the connection carries next
		if err := do(w, r, in); err != nil {
			if !in.over.Load() || context.Cause(ctx) != nil {
				turnAway(w) // a Read that was ended from here has ended the connection's context too
			}
			s.fail(w, r, err)
		}
	}}
}

// enter takes one of the slots, and waits a moment for it.
func (s *Server) enter(ctx context.Context, slots chan struct{}) error {
	timer := time.NewTimer(slotWithin)
	defer timer.Stop()
	select {
	case slots <- struct{}{}:
		return nil
	case <-timer.C:
		return api.NewProblem(api.CodeUnavailable, "%d others are at it already", cap(slots))
	case <-s.stop:
		return errStopping
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// slotWithin is how long a request waits for others to end.
const slotWithin = 10 * time.Second

// intake is a body that has to keep a pace. The end of its context ends a Read that waits.
type intake struct {
	ctx     context.Context //nolint:containedctx // of the one request that this lives in
	cancel  context.CancelCauseFunc
	body    io.Reader
	control *http.ResponseController
	left    int         // bytes until the next look at the clock
	over    atomic.Bool // the body has come to its end
	end     func()      // joins what watches the context
}

func newIntake(r *http.Request, control *http.ResponseController, cancel context.CancelCauseFunc) *intake {
	in := &intake{ctx: r.Context(), cancel: cancel, body: r.Body, control: control}
	woken := make(chan struct{})
	stop := context.AfterFunc(in.ctx, func() {
		defer close(woken)
		if !in.over.Load() {
			_ = control.SetReadDeadline(time.Now())
		}
	})
	in.end = func() {
		if !stop() {
			<-woken
		}
	}
	return in
}

// yield ends the request in favour of a newer one. It may be called from anywhere.
func (in *intake) yield() { in.cancel(errYield) }

func (in *intake) Read(p []byte) (int, error) {
	if in.left <= 0 {
		in.left = paceBytes
		_ = in.control.SetReadDeadline(time.Now().Add(paceWithin)) // a reader without one is a test's
		_ = in.control.SetWriteDeadline(time.Now().Add(paceWithin + 2*answerWithin))
	}
	if err := context.Cause(in.ctx); err != nil {
		return 0, err
	}
	n, err := in.body.Read(p)
	in.left -= n
	var tooLarge *http.MaxBytesError
	switch {
	case err == io.EOF:
		in.over.Store(true)
	case err == nil || errors.As(err, &tooLarge):
	case context.Cause(in.ctx) != nil:
		err = context.Cause(in.ctx)
	default:
		err = fmt.Errorf("%w: %w", errBroke, err)
	}
	return n, err
}
