package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Bounds of what requests without a good token make the daemon write: somebody who guesses fills neither disk nor log.
const (
	deniedPerWindow = 20
	deniedWindow    = time.Minute
)

// auditDenied is the kind of the event for a request over TCP that showed no token that lets in.
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

// denied writes down that somebody was not let in: whence, for what and why, and nothing of what was shown.
func (s *Server) denied(r *http.Request, why error) {
	write, last := s.denials.note(time.Now())
	if !write {
		return
	}
	what, by := clip(r.Method+" "+r.URL.EscapedPath()), "unknown"
	var ended *access.EndedError
	if errors.As(why, &ended) {
		by = "token:" + ended.Name
	}
	s.log.Warn("a request was not let in", telemetry.KeyPeer, r.RemoteAddr, "request", what, "by", by, "why", why)
	if last {
		s.log.Warn("no more of these are written down for a while")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), answerWithin)
	defer cancel()
	event := store.AuditEvent{Kind: auditDenied, Actor: by, Subject: r.RemoteAddr, Detail: what}
	if err := s.cfg.Store.Update(ctx, store.ClassRest, func(tx *store.Tx) error { return tx.AppendAudit(event) }); err != nil {
		s.log.Error("an audit event was not stored", "kind", event.Kind, telemetry.KeyError, err)
	}
}
