package casv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// MaxRanges bounds the ranges of one state. A receiver with more holes forgets the smallest pieces.
const MaxRanges = 512

// CasRangeStateV1 says which ranges of an object the receiver holds (09§92). It asks for the rest, and while bytes flow it
// is the acknowledgement by which a sender paces itself: of this run and of all before it on the stream. That the object is
// right is known once the whole was hashed. It needs FeatureCASRange.
type CasRangeStateV1 struct {
	Object protocol.RefV1
	Held   []RangeV1 `postcard:"max=512"` // ascending, with holes between them
}

// RangeV1 is a range of bytes.
type RangeV1 struct {
	Offset uint64
	Length uint64
}

// Tag implements protocol.Message.
func (*CasRangeStateV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeCasRangeState, Schema: 1}
}

// Validate implements protocol.Message.
func (w *CasRangeStateV1) Validate() error {
	var c protocol.Check
	c.In("object", w.Object.Validate())
	end := uint64(0)
	for i, r := range w.Held {
		c.Item("held", i, within(w.Object, r.Offset, r.Length))
		c.That(r.Length > 0 && (i == 0 || r.Offset > end), "held", "is not ascending with holes between")
		end = r.Offset + r.Length
	}
	return c.Err()
}
