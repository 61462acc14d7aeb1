package casv1

import "github.com/forgeyard/forgeyard/internal/protocol"

// EncodingV1 says how a run of bytes is encoded on its way. The digest is always of the decoded bytes (09§156). An
// unknown one refuses the message.
type EncodingV1 uint8

// The encodings.
const (
	EncodingPlain  EncodingV1 = 1
	EncodingZstd   EncodingV1 = 2 // needs FeatureCASZstd
	EncodingSnappy EncodingV1 = 3 // needs FeatureCASSnappy; one block of Snappy's format, not its frames
)

var encodingNames = protocol.Enum[string]{1: "plain", 2: "zstd", 3: "snappy"}

func (e EncodingV1) String() string { return encodingNames.Name(uint8(e)) }

// Valid reports whether e is one of the encodings.
func (e EncodingV1) Valid() bool { return encodingNames.Known(uint8(e)) }

// Needs is the feature without which a run may not be encoded so.
func (e EncodingV1) Needs() protocol.Feature {
	switch e {
	case EncodingZstd:
		return protocol.FeatureCASZstd
	case EncodingSnappy:
		return protocol.FeatureCASSnappy
	default:
		return protocol.FeatureNone
	}
}

// StreamHeaderV1 is the head of a stream of objects in either direction: the attempt on whose behalf they move.
type StreamHeaderV1 struct {
	Attempt [16]byte
	Lease   [16]byte
}

// Validate implements protocol.StreamHead.
func (w *StreamHeaderV1) Validate() error {
	var c protocol.Check
	c.ID("attempt", w.Attempt)
	c.ID("lease", w.Lease)
	return c.Err()
}
