package agentv1

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// Bounds of a job specification.
const (
	MaxInlineSpec        = 48 << 10 // in an offer
	MaxSpecBytes  uint64 = 1 << 20  // behind a reference
)

// LeaseOfferV1 offers an attempt (09§64). It grants nothing and says no time. It may come more than once.
type LeaseOfferV1 struct {
	Context protocol.ContextV1
	Spec    SpecV1
}

// SpecV1 is where the bytes of the job specification are. Whoever gets them hashes them: they are the spec only if their
// digest is the one of the context (09§66).
type SpecV1 struct {
	Inline *[]byte         `postcard:"=1,max=49152"`
	Ref    *protocol.RefV1 `postcard:"=2"`
}

// NewLeaseOffer returns the wire form.
func NewLeaseOffer(m *forge.LeaseOffer) *LeaseOfferV1 {
	w := &LeaseOfferV1{Context: protocol.NewContext(m.Context)}
	if m.Spec == nil {
		ref := protocol.NewRef(m.SpecRef)
		w.Spec.Ref = &ref
		return w
	}
	inline := slices.Clone(m.Spec)
	w.Spec.Inline = &inline
	return w
}

// Tag implements protocol.Message.
func (*LeaseOfferV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeLeaseOffer, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *LeaseOfferV1) Speaker() protocol.PeerV1 { return w.Context.Peer }

// Validate implements protocol.Message. A spec that is not the one it should be is no fault of form: the agent says so
// in its rejection.
func (w *LeaseOfferV1) Validate() error {
	var c protocol.Check
	c.In("context", w.Context.Validate())
	switch {
	case w.Spec.Inline != nil:
		c.Count("spec.inline", len(*w.Spec.Inline), 1, MaxInlineSpec)
	case w.Spec.Ref != nil:
		c.In("spec.ref", w.Spec.Ref.Validate())
		c.That(w.Spec.Ref.Bytes > 0 && w.Spec.Ref.Bytes <= MaxSpecBytes, "spec.ref", "is out of range")
	default:
		c.That(false, "spec", "is missing")
	}
	return c.Err()
}

// Domain implements protocol.Domain.
func (w *LeaseOfferV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	m := &forge.LeaseOffer{Context: w.Context.Domain()}
	if w.Spec.Inline != nil {
		m.Spec = *w.Spec.Inline
	} else {
		m.SpecRef = w.Spec.Ref.Domain()
	}
	return m, nil
}
