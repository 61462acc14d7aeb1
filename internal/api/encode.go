package api

import (
	"encoding/binary"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// sampleBytes is how much of a batch is compressed to see whether it pays.
const sampleBytes = 64 << 10

// coders have about a megabyte each. As many are made as batches are under way.
var coders = sync.Pool{New: func() any {
	coder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil // only wrong options do that; then nothing is compressed
	}
	return coder
}}

// shorter returns a batch compressed as a daemon takes it, or nil where that does not pay.
func shorter(body []byte) []byte {
	coder, _ := coders.Get().(*zstd.Encoder)
	if coder == nil {
		return nil
	}
	defer coders.Put(coder)
	middle := body[len(body)/2:]
	if middle = middle[:min(len(middle), sampleBytes)]; !pays(len(coder.EncodeAll(middle, nil)), len(middle)) {
		return nil
	}
	encoded := padded(coder.EncodeAll(body, nil), len(body)/MaxRatio)
	if !pays(len(encoded), len(body)) {
		return nil
	}
	return encoded
}

// pays reports whether an encoding is worth its time.
func pays(encoded, plain int) bool { return encoded < plain-plain/8 }

// padded puts a frame that decoders skip before what compressed better than a daemon believes.
func padded(encoded []byte, least int) []byte {
	const head, skippable = 8, 0x184d2a50
	if len(encoded) >= least {
		return encoded
	}
	n := max(0, least-len(encoded)-head)
	out := binary.LittleEndian.AppendUint32(make([]byte, 0, head+n+len(encoded)), skippable)
	out = binary.LittleEndian.AppendUint32(out, uint32(n)) //nolint:gosec // less than a batch
	return append(append(out, make([]byte, n)...), encoded...)
}
