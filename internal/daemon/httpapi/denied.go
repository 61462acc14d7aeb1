package httpapi

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Bounds of what requests without the token make the daemon write: somebody who guesses fills neither disk nor log.
const (
	deniedPerWindow = 20
	deniedWindow    = time.Minute
)

// auditDenied is the kind of the event for a request over TCP that did not show the token.
const auditDenied = "http.unauthenticated"

// denials counts the requests that were turned away within a window of time.
type denials struct {
	mu    sync.Mutex
	since time.Time
	n     int
}

// note counts one more and reports whether it is to be written down, and whether it is the last one of the window that is.
func (d *denials) note(now time.Time) (write, last bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if age := now.Sub(d.since); age < 0 || age >= deniedWindow {
		d.since, d.n = now, 0
	}
	d.n = min(d.n+1, deniedPerWindow+1)
	return d.n <= deniedPerWindow, d.n == deniedPerWindow
}

// denied writes down that somebody asked without the token: whence and for what, and nothing of what was shown instead.
func (s *Server) denied(r *http.Request) {
	write, last := s.denials.note(time.Now())
	if !write {
		return
	}
	what := clip(r.Method + " " + r.URL.EscapedPath())
	s.log.Warn("a request without the token was refused", telemetry.KeyPeer, r.RemoteAddr, "request", what)
	if last {
		s.log.Warn("no more of these are written down for a while")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerWithin)
	defer cancel()
	event := store.AuditEvent{Kind: auditDenied, Actor: "unknown", Subject: r.RemoteAddr, Detail: what}
	if err := s.cfg.Store.Update(ctx, store.ClassRest, func(tx *store.Tx) error { return tx.AppendAudit(event) }); err != nil {
		s.log.Error("an audit event was not stored", "kind", event.Kind, telemetry.KeyError, err)
	}
}
