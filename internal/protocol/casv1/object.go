package casv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// Bounds of a run. They are what keeps a receiver's memory and a decoder's output small, whatever a peer says (09§137,
// 09§154).
const (
	MaxRun   = 1 << 20 // bytes of an object in one run
	MaxRatio = 256     // how many bytes of an object one encoded byte may stand for
)

// CasHeaderV1 announces a run of an object's bytes (09§90). Exactly Encoded bytes follow it on the stream, outside any
// frame, and decode to the Length bytes from Offset. A run of no bytes announces an object: the receiver answers with
// the ranges that it holds. Of an object without bytes it is the whole.
type CasHeaderV1 struct {
	Object   protocol.RefV1
	Offset   uint64
	Length   uint64
	Encoding EncodingV1
	Encoded  uint64 // of plain runs the same as Length
}

// Tag implements protocol.Message.
func (*CasHeaderV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeCasHeader, Schema: 1} }

// Validate implements protocol.Message.
func (w *CasHeaderV1) Validate() error {
	var c protocol.Check
	c.In("object", w.Object.Validate())
	c.In("run", within(w.Object, w.Offset, w.Length))
	c.That(w.Length <= MaxRun, "length", "is longer than a run may be")
	c.That(w.Encoding.Valid(), "encoding", "is not known")
	c.That(w.Encoding != EncodingPlain || w.Encoded == w.Length, "encoded", "is not the length of a plain run")
	c.That(w.Encoded <= w.Length+w.Length/8+64, "encoded", "is longer than an encoding can be")
	c.That(w.Encoded >= w.Length/MaxRatio, "encoded", "is shorter than an encoding may be")
	return c.Err()
}

// within checks that a range lies inside an object.
func within(object protocol.RefV1, offset, length uint64) error {
	var c protocol.Check
	c.That(offset <= object.Bytes && length <= object.Bytes-offset, "range", "is outside the object")
	return c.Err()
}
