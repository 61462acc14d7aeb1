package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// RecoverAttemptsV1 names what earlier processes on this state folder held, after all of it was killed (07§107).
type RecoverAttemptsV1 struct {
	Peer     protocol.PeerV1
	Previous []RecoveredV1 `postcard:"max=256"`
}

// RecoveredV1 is one attempt of an earlier process of the same runner.
type RecoveredV1 struct {
	Session    [16]byte // of that process
	Work       protocol.WorkV1
	Killed     bool
	Completion *PendingV1 // that was frozen and never acknowledged
}

// PendingV1 names a completion.
type PendingV1 struct {
	Message [16]byte
	Hash    [32]byte
}

// NewRecoverAttempts returns the wire form. An attempt of another runner gets no session, which Validate refuses.
func NewRecoverAttempts(m *forge.RecoverAttempts) *RecoverAttemptsV1 {
	w := &RecoverAttemptsV1{Peer: protocol.NewPeer(m.Runner, m.Session)}
	for _, r := range m.Previous {
		item := RecoveredV1{Work: protocol.NewWork(r.Context), Killed: r.Killed}
		if r.Context.Runner == m.Runner {
			item.Session = r.Context.Session.ULID
		}
		if !r.Completion.IsZero() {
			item.Completion = &PendingV1{Message: r.Completion.ULID, Hash: r.Hash}
		}
		w.Previous = append(w.Previous, item)
	}
	return w
}

// Tag implements protocol.Message.
func (*RecoverAttemptsV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeRecoverAttempts, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *RecoverAttemptsV1) Speaker() protocol.PeerV1 { return w.Peer }

// Validate implements protocol.Message.
func (w *RecoverAttemptsV1) Validate() error {
	var c protocol.Check
	c.In("peer", w.Peer.Validate())
	for i := range w.Previous {
		c.Item("previous", i, w.Previous[i].validate())
	}
	return c.Err()
}

func (w *RecoveredV1) validate() error {
	var c protocol.Check
	c.ID("session", w.Session)
	c.In("work", w.Work.Validate())
	if w.Completion != nil {
		c.ID("completion.message", w.Completion.Message)
		c.Digest("completion.hash", w.Completion.Hash)
	}
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *RecoverAttemptsV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	m := &forge.RecoverAttempts{Runner: w.Peer.RunnerID(), Session: w.Peer.SessionID()}
	for _, r := range w.Previous {
		item := forge.RecoveredAttempt{
			Context: r.Work.Of(protocol.PeerV1{Runner: w.Peer.Runner, Session: r.Session}), Killed: r.Killed,
		}
		if r.Completion != nil {
			item.Completion, item.Hash = forge.MakeID[forge.MessageID](r.Completion.Message), r.Completion.Hash
		}
		m.Previous = append(m.Previous, item)
	}
	return m, nil
}
