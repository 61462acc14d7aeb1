package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
)

// errStopping ends streams when the server stops.
var errStopping = errors.New("the daemon is stopping")

// events writes an event stream. It may be used by several goroutines.
type events struct {
	mu    sync.Mutex
	w     http.ResponseWriter
	flush *http.ResponseController
	quiet bool // nothing was written since the last look of keepAlive
}

// newEvents begins a stream: from here on there is no other answer.
func newEvents(w http.ResponseWriter, kind string) *events {
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("X-Accel-Buffering", "no") // proxies that buffer would hold events back
	e := &events{w: w, flush: http.NewResponseController(w)}
	w.WriteHeader(http.StatusOK)
	return e
}

// send writes one event; id zero writes none.
func (e *events) send(id uint64, name string, data any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("event %s: %w", name, err)
	}
	out := make([]byte, 0, len(text)+64)
	if id > 0 {
		out = append(strconv.AppendUint(append(out, "id: "...), id, 10), '\n')
	}
	out = append(append(append(out, "event: "...), name...), "\ndata: "...)
	return e.write(append(append(out, text...), "\n\n"...))
}

// write writes bytes and sends them off.
func (e *events) write(p []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.quiet = false
	_ = e.flush.SetWriteDeadline(time.Now().Add(writeWithin)) // a writer without one is a test's
	if _, err := e.w.Write(p); err != nil {
		return err
	}
	return e.flush.Flush()
}

// keepAlive writes a comment whenever the stream was silent for a while, until ctx ends or the reader is gone, which it
// tells by gone. It returns when it has stopped.
func (e *events) keepAlive(ctx context.Context, every time.Duration, gone func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		e.mu.Lock()
		quiet := e.quiet
		e.quiet = true
		e.mu.Unlock()
		if !quiet {
			continue
		}
		if err := e.write([]byte(": \n\n")); err != nil {
			gone(err)
			return
		}
	}
}

// alive runs a stream with comments in its silences. do gets a context that ends when the reader is gone.
func (e *events) alive(ctx context.Context, do func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var keeper sync.WaitGroup
	keeper.Go(func() { e.keepAlive(ctx, api.KeepAlive/2, cancel) })
	err := do(ctx)
	cancel(nil)
	keeper.Wait()
	return err
}
