package logv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// KindV1 says where the bytes of a frame come from. An unknown one refuses the frame.
type KindV1 uint8

var kinds = protocol.Enum[forge.LogStream]{
	1: forge.LogStdout, 2: forge.LogStderr, 3: forge.LogAgent, 4: forge.LogStructured,
}

func (k KindV1) String() string { return kinds.Name(uint8(k)) }

// LogFrameV1 is one piece of a log (09§84). The stream's header says whose.
type LogFrameV1 struct {
	Seq   uint64
	Kind  KindV1
	Time  int64  // milliseconds since 1970, for people
	Bytes []byte `postcard:"max=65536"` // in the encoding of the stream
}

// NewLogFrame returns the wire form. It shares its bytes with f.
func NewLogFrame(f forge.LogFrame) *LogFrameV1 {
	return &LogFrameV1{
		Seq: uint64(f.Seq), Kind: KindV1(kinds.Wire(f.Stream)), Time: int64(f.Time), Bytes: f.Bytes,
	}
}

// Tag implements protocol.Message.
func (*LogFrameV1) Tag() protocol.Tag { return protocol.Tag{Type: protocol.TypeLogFrame, Schema: 1} }

// Validate implements protocol.Message.
func (w *LogFrameV1) Validate() error {
	var c protocol.Check
	c.Wall("time", w.Time)
	c.In("frame", w.Frame().Validate())
	return c.Err()
}

// Frame returns the domain value, which is valid if w is and the encoding is plain.
func (w *LogFrameV1) Frame() forge.LogFrame {
	return forge.LogFrame{
		Seq: forge.LogSeq(w.Seq), Stream: kinds.Or(uint8(w.Kind), 0), Time: forge.WallTime(w.Time), Bytes: w.Bytes,
	}
}
