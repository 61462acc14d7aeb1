package logv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// EncodingV1 says how the payloads of a stream's frames are encoded. An unknown one refuses the stream.
type EncodingV1 uint8

// The encodings.
const (
	EncodingPlain EncodingV1 = 1
	EncodingZstd  EncodingV1 = 2 // needs FeatureLogZstd; each payload by itself, of MaxLogPayload at most when decoded
)

var encodingNames = protocol.Enum[string]{1: "plain", 2: "zstd"}

func (e EncodingV1) String() string { return encodingNames.Name(uint8(e)) }

// Valid reports whether e is one of the encodings.
func (e EncodingV1) Valid() bool { return encodingNames.Known(uint8(e)) }

// StreamHeaderV1 is the head of a log stream (09§83).
type StreamHeaderV1 struct {
	Attempt  [16]byte
	Lease    [16]byte
	First    uint64 // sequence number of the first frame, from 1
	Encoding EncodingV1
}

// Validate implements protocol.StreamHead.
func (w *StreamHeaderV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	c.ID("lease", w.Lease)
	c.That(w.First != 0, "first", "is missing")
	c.That(w.Encoding.Valid(), "encoding", "is not known")
	return c.Err()
}

// AttemptID returns the attempt whose log follows.
func (w *StreamHeaderV1) AttemptID() forge.AttemptID { return forge.MakeID[forge.AttemptID](w.Attempt) }
