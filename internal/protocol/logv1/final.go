package logv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// LogFinalV1 asks for the seal of a log whose frames were all acknowledged (09§243).
type LogFinalV1 struct {
	Context protocol.ContextV1
	Seal    protocol.LogSealV1
}

// NewLogFinal returns the wire form.
func NewLogFinal(m *forge.LogFinal) *LogFinalV1 {
	return &LogFinalV1{Context: protocol.NewContext(m.Context), Seal: protocol.NewLogSeal(m.Seal)}
}

// Tag implements protocol.Message.
func (*LogFinalV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeLogFinal, Schema: 1} }

// Speaker implements protocol.Speaker.
func (w *LogFinalV1) Speaker() protocol.PeerV1 { return w.Context.Peer }

// Validate implements protocol.Message. A log may be empty.
func (w *LogFinalV1) Validate() error {
	var c protocol.Check
	c.In("context", w.Context.Validate())
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *LogFinalV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.LogFinal{Context: w.Context.Domain(), Seal: w.Seal.Domain()}, nil
}
