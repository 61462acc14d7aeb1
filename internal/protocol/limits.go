package protocol

import "time"

// Bounds that hold for every message. The maximum of each type stands in the registry.
const (
	kibi uint32 = 1 << 10

	// MaxBody is the largest body of any type. Nothing larger is ever framed: bulk bytes are streamed (09§37).
	MaxBody = 256 * kibi
	// MaxUnknownBody is how much of a frame of an unknown type is read, to learn which request it was.
	MaxUnknownBody = 2 * kibi
	// MaxStreamHeader bounds the header of a stream.
	MaxStreamHeader = 1 << 10
	// MaxDepth bounds how deeply a payload nests.
	MaxDepth = 8
	// MaxEnvelope is the longest encoding of an EnvelopeV1.
	MaxEnvelope = 74
	// MaxText bounds a text that has no bound of its own.
	MaxText = 1 << 10

	// expansion bounds what decoding allocates to this many times the type's maximum: an empty text is one byte on the
	// wire and sixteen in memory.
	expansion = 16
)

// Times that belong to the protocol rather than to a configuration.
const (
	// StreamHeaderWithin is how long the header of a stream may take from its first byte.
	StreamHeaderWithin = 5 * time.Second
	// RegisterWithin is how long a connection may stand without a registration (09§60).
	RegisterWithin = 10 * time.Second
	// BadStreamsPerMinute is how many stream headers may be wrong before the connection closes.
	BadStreamsPerMinute = 3
)

const minute = time.Minute
