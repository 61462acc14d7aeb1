package runner

import (
	"encoding/binary"
	"errors"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	// zstdFrom is from how many bytes on a payload is worth the try.
	zstdFrom = 256
	// zstdRest bounds how many payloads are not tried after several that did not shrink by an eighth.
	zstdRest = 64
	// storedHead is the most that a stored frame has besides its bytes.
	storedHead = 10
)

// errNotZstd says that a payload cannot be sent on a compressed stream: it does not shrink, and what frames it has no room.
var errNotZstd = errors.New("a payload does not fit as Zstandard")

// newPayloadEncoder returns what compresses the payloads of every log of this agent, one at a time: that bounds what it takes of the
// machine to one processor.
var newPayloadEncoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false),
		zstd.WithWindowSize(forge.MaxLogPayload), zstd.WithSingleSegment(true), zstd.WithLowerEncoderMem(true))
})

// payloads encodes what one compressed stream carries. It looks at each payload whether compressing pays, and after some that do
// not leaves out more and more of the next, so that output which does not shrink costs little more than on a plain stream.
type payloads struct {
	encoder *zstd.Encoder
	misses  int // in a row
	rest    int // so many are not tried
}

// append appends a payload as one Zstandard frame that states its length.
func (z *payloads) append(dst, p []byte) ([]byte, error) {
	at := len(dst)
	if len(p) >= zstdFrom && z.try() {
		dst = z.encoder.EncodeAll(p, dst)
		if len(dst)-at <= len(p)-len(p)/8 {
			z.misses = 0
			return dst, nil
		}
		z.misses = min(z.misses+1, 31)
		z.rest = min(1<<z.misses, zstdRest)
		dst = dst[:at]
	}
	if len(p) > forge.MaxLogPayload-storedHead {
		return dst, errNotZstd
	}
	return appendStored(dst, p), nil
}

func (z *payloads) try() bool {
	if z.rest > 0 {
		z.rest--
		return false
	}
	return true
}

// appendStored appends bytes as a Zstandard frame of one block that is not compressed (RFC 8878, 3.1.1).
func appendStored(dst, p []byte) []byte {
	const singleSegment, twoBytes, lastBlock = 1 << 5, 1 << 6, 1
	dst = binary.LittleEndian.AppendUint32(dst, 0xFD2FB528)
	if len(p) < 256 {
		dst = append(dst, singleSegment, byte(len(p)))
	} else {
		dst = append(dst, singleSegment|twoBytes)
		dst = binary.LittleEndian.AppendUint16(dst, uint16(len(p)-256))
	}
	block := uint32(lastBlock | len(p)<<3)
	dst = append(dst, byte(block), byte(block>>8), byte(block>>16))
	return append(dst, p...)
}
