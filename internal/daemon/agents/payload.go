package agents

import (
	"errors"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// newPayloadDecoder returns what decodes the payloads of all log streams. It holds a few tables for each processor, and nothing for a
// stream.
var newPayloadDecoder = sync.OnceValues(func() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true))
})

var errPayload = errors.New("a payload is no Zstandard frame that states its length within that of a payload")

// plainBytes is how many bytes a compressed payload says that it has. Nothing is decoded for that.
func plainBytes(packed []byte) (int, error) {
	var head zstd.Header
	if err := head.Decode(packed); err != nil {
		return 0, fmt.Errorf("%w: %w", errPayload, err)
	}
	if head.Skippable || !head.HasFCS || head.FrameContentSize == 0 || head.FrameContentSize > forge.MaxLogPayload {
		return 0, errPayload
	}
	return int(head.FrameContentSize), nil
}

// decodePayload decodes a payload to as many bytes as it has said, and no further.
func decodePayload(packed []byte, plain int) ([]byte, error) {
	decoder, err := newPayloadDecoder()
	if err != nil {
		return nil, err
	}
	out, err := decoder.DecodeAll(packed, make([]byte, 0, plain))
	if err == nil && len(out) != plain {
		err = fmt.Errorf("it has %d bytes and not the %d that it says", len(out), plain)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errPayload, err)
	}
	return out, nil
}
