package agents

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// auditNames are the kinds of audit events that rules ask for (09§279).
var auditNames = map[authority.Audit]string{
	authority.AuditCloneSuspected:  "clone_suspected",
	authority.AuditFolderReplaced:  "state_folder_replaced",
	authority.AuditForeignAttempt:  "foreign_attempt",
	authority.AuditChangedResult:   "changed_result",
	authority.AuditSessionReplaced: "session_replaced",
}

// auditViolation is the kind of an event for something that a peer may never say.
const auditViolation = "role_violation"

// ruleName names a rule for logs.
func ruleName(cmd authority.Command) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", cmd), "*authority.")
}

// auditOf makes an event of what the core says. It names ids and never what was sent.
func auditOf(e core.Audit) store.AuditEvent {
	event := store.AuditEvent{Kind: auditNames[e.Kind], Actor: "agent", Runner: e.Runner, Detail: ruleName(e.Command)}
	switch cmd := e.Command.(type) {
	case *authority.Register:
		event.Runner, event.Subject = cmd.Runner, cmd.Session.String()
	case *authority.Complete:
		event.Subject = cmd.Completion.Context.Attempt.String()
	case *authority.SealLog:
		event.Subject = cmd.Context.Attempt.String()
	case *authority.Claim:
		event.Subject = cmd.Context.Attempt.String()
	case *authority.Reject:
		event.Subject = cmd.Context.Attempt.String()
	case *authority.Phase:
		event.Subject = cmd.Context.Attempt.String()
	case *authority.Recover:
		event.Subject = cmd.Item.Context.Attempt.String()
	}
	return event
}

// Bounds of the audit log: what one runner does again and again is one entry in the daemon's log, not a full disk.
const (
	auditsPerRunner = 20 // of a kind, within auditWindow
	auditWindow     = time.Minute
)

// auditKey is what audit events are counted by.
type auditKey struct {
	runner forge.RunnerID
	kind   string
}

// audit writes an event down, unless it is one too many of its kind. It is called by the loop.
func (s *Server) audit(e store.AuditEvent) {
	if now := s.boot(); now.Sub(s.audited) >= auditWindow {
		s.audited = now
		clear(s.audits)
	}
	key := auditKey{e.Runner, e.Kind}
	s.audits[key]++
	s.cfg.Metrics.audit(e.Kind)
	switch n := s.audits[key]; {
	case n == auditsPerRunner+1:
		s.cfg.Log.Warn("audit events of this kind are only counted for a while", "kind", e.Kind, telemetry.KeyRunner, e.Runner.String())
		return
	case n > auditsPerRunner:
		return
	}
	level := slog.LevelWarn
	if e.Kind == auditNames[authority.AuditSessionReplaced] {
		level = slog.LevelInfo // an agent was started anew: nobody has to look
	}
	s.cfg.Log.Log(s.work, level, "audit", "kind", e.Kind, telemetry.KeyRunner, e.Runner.String(), "subject", e.Subject, "detail", e.Detail)
	s.launch(func() core.Event {
		err := s.cfg.Store.Update(s.work, store.ClassRest, func(tx *store.Tx) error { return tx.AppendAudit(e) })
		if err != nil {
			s.cfg.Log.Error("an audit event was not written down", "kind", e.Kind, telemetry.KeyRunner, e.Runner.String(), telemetry.KeyError, err)
		}
		return nil
	})
}

// foreign records that an agent asked for an attempt that is not its own.
func (s *Server) foreign(c *conn, attempt forge.AttemptID) {
	s.post(func() {
		s.audit(store.AuditEvent{
			Kind: auditNames[authority.AuditForeignAttempt], Actor: "agent", Runner: c.runner, Subject: attempt.String(), Detail: "stream",
		})
	})
}

// observer is the server as its links see it.
type observer Server

// Violation implements link.Observer.
func (o *observer) Violation(l *link.Link, v *protocol.Violation) {
	s := (*Server)(o)
	s.cfg.Metrics.violation(v)
	if v.Severity() != protocol.SeveritySecurity {
		return
	}
	runner, _ := trust.RunnerOf(l.Peer().Certificate, s.cfg.Cluster) // it was one when the connection was taken
	event := store.AuditEvent{Kind: auditViolation, Actor: "agent", Runner: runner, Subject: addr(l.Peer()), Detail: v.Error()}
	s.post(func() { s.audit(event) })
}

// Received implements link.Observer.
func (o *observer) Received(tag protocol.Tag, bytes int) { o.cfg.Metrics.message("in", tag, bytes) }

// Sent implements link.Observer.
func (o *observer) Sent(tag protocol.Tag, bytes int) { o.cfg.Metrics.message("out", tag, bytes) }

// Opened implements link.Observer.
func (o *observer) Opened(kind protocol.StreamKind) { o.cfg.Metrics.opened(kind) }
