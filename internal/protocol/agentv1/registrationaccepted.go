package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// RegistrationAcceptedV1 makes a connection the voice of its runner (07§14). Resync follows.
type RegistrationAcceptedV1 struct {
	Time      int64 // milliseconds since 1970 on the daemon's clock, for diagnostics (09§147)
	Policy    PolicyV1
	Transport *[16]byte // what the daemon calls this connection
}

// PolicyV1 is the time scale of leases, in nanoseconds, so that both sides count with the same numbers.
type PolicyV1 struct {
	TTL       uint64
	Grace     uint64
	Renew     uint64
	Margin    uint64
	KillLead  uint64
	SoftGrace uint64
	OfferTTL  uint64
	Request   uint64
}

// NewRegistrationAccepted returns the wire form.
func NewRegistrationAccepted(m *forge.RegistrationAccepted) *RegistrationAcceptedV1 {
	w := &RegistrationAcceptedV1{Time: int64(m.ServerTime), Policy: newPolicy(m.Policy)}
	if !m.Transport.IsZero() {
		id := [16]byte(m.Transport.ULID)
		w.Transport = &id
	}
	return w
}

func newPolicy(p forge.LeasePolicy) PolicyV1 {
	return PolicyV1{
		TTL: protocol.Nanos(p.TTL), Grace: protocol.Nanos(p.Grace), Renew: protocol.Nanos(p.Renew),
		Margin: protocol.Nanos(p.Margin), KillLead: protocol.Nanos(p.KillLead), SoftGrace: protocol.Nanos(p.SoftGrace),
		OfferTTL: protocol.Nanos(p.OfferTTL), Request: protocol.Nanos(p.Request),
	}
}

func (w PolicyV1) domain() forge.LeasePolicy {
	return forge.LeasePolicy{
		TTL: protocol.Duration(w.TTL), Grace: protocol.Duration(w.Grace), Renew: protocol.Duration(w.Renew),
		Margin: protocol.Duration(w.Margin), KillLead: protocol.Duration(w.KillLead), SoftGrace: protocol.Duration(w.SoftGrace),
		OfferTTL: protocol.Duration(w.OfferTTL), Request: protocol.Duration(w.Request),
	}
}

// Tag implements protocol.Message.
func (*RegistrationAcceptedV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeRegistrationAccepted, Schema: 1}
}

// Validate implements protocol.Message.
func (w *RegistrationAcceptedV1) Validate() error {
	var c protocol.Check
	c.Wall("time", w.Time)
	c.Duration("policy.margin", w.Policy.Margin, 0)
	c.In("policy", w.Policy.domain().Validate())
	if w.Transport != nil {
		c.ID("transport", *w.Transport)
	}
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *RegistrationAcceptedV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	m := &forge.RegistrationAccepted{ServerTime: forge.WallTime(w.Time), Policy: w.Policy.domain()}
	if w.Transport != nil {
		m.Transport = forge.MakeID[forge.TransportSessionID](*w.Transport)
	}
	return m, nil
}
