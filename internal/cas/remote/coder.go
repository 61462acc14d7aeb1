package remote

import (
	"encoding/binary"
	"errors"
	"runtime"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
)

// Bounds of compression.
const (
	leastCoded = 512      // bytes of a run below which nothing is won
	sample     = 16 << 10 // bytes of a run that tell whether compression pays
	sampleGap  = 4 << 20  // bytes of an object after which that is found out anew
	window     = 1 << 20  // of encoder and decoder: a run's
)

// coder encodes and decodes runs. It may be used by many at once; how many do so at a time is bounded by the processors, and
// so is its memory.
type coder struct {
	enc *zstd.Encoder
	dec *zstd.Decoder
}

func newCoder() *coder {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(runtime.GOMAXPROCS(0)),
		zstd.WithWindowSize(window), zstd.WithEncoderCRC(false))
	if err != nil {
		panic("remote: " + err.Error())
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)), zstd.WithDecoderMaxMemory(casv1.MaxRun),
		zstd.WithDecoderMaxWindow(window), zstd.WithDecodeAllCapLimit(true))
	if err != nil {
		panic("remote: " + err.Error())
	}
	return &coder{enc, dec}
}

// errEncoding says that a run does not decode to what its header says.
var errEncoding = errors.New("a run does not decode to its length")

// decode decodes a run into dst, whose length is what the header says. It never writes more, whatever src holds.
func (c *coder) decode(e casv1.EncodingV1, dst, src []byte) error {
	var got []byte
	var err error
	if e == casv1.EncodingSnappy {
		if n, bad := s2.DecodedLen(src); bad != nil || n != len(dst) {
			return errEncoding
		}
		got, err = s2.Decode(dst[:len(dst):len(dst)], src)
	} else {
		got, err = c.dec.DecodeAll(src, dst[:0:len(dst)])
	}
	if err != nil || len(got) != len(dst) {
		return errEncoding
	}
	return nil
}

// choice is what is known of an object on its way: whether compression pays.
type choice struct {
	pays bool
	left int     // bytes until the next sample
	last float64 // how many times longer the last run was than its encoding; 0: it was plain
}

// mostWon bounds how much longer a run may be because the last one has compressed: the next one may not, and then takes as
// much longer on its way.
const mostWon = 8

// won is how many times longer a run may be than what is to be sent of it.
func (c *choice) won() float64 { return min(max(c.last, 1), mostWon) }

// roomFor is how many bytes of room n bytes take in whatever encoding.
func roomFor(n int) int { return s2.MaxEncodedLen(n) }

// encode returns a run as it is sent, in room or in plain itself. how is the encoding, where that pays.
func (c *coder) encode(plain, room []byte, how casv1.EncodingV1, ch *choice) (encoded []byte, encoding casv1.EncodingV1) {
	ch.last = 0
	if how == casv1.EncodingPlain || len(plain) < leastCoded {
		return plain, casv1.EncodingPlain
	}
	if ch.left <= 0 {
		some := plain[:min(len(plain), sample)]
		ch.pays, ch.left = pays(len(c.compress(how, some, room)), len(some)), sampleGap
	}
	ch.left -= len(plain)
	if !ch.pays {
		return plain, casv1.EncodingPlain
	}
	encoded = c.compress(how, plain, room)
	if !pays(len(encoded), len(plain)) {
		ch.pays = false // until the next sample
		return plain, casv1.EncodingPlain
	}
	ch.last = float64(len(plain)) / float64(len(encoded))
	if how == casv1.EncodingZstd { // Snappy cannot come to so little
		encoded = pad(encoded, len(plain)/casv1.MaxRatio)
	}
	return encoded, how
}

func (c *coder) compress(how casv1.EncodingV1, plain, room []byte) []byte {
	if how == casv1.EncodingSnappy {
		return s2.EncodeSnappy(room[:cap(room)], plain)
	}
	return c.enc.EncodeAll(plain, room[:0])
}

// pays reports whether an encoding is worth its time.
func pays(encoded, plain int) bool { return encoded <= plain-plain/8 }

// pad lengthens what zstd has compressed too well with a frame that decoders skip.
func pad(b []byte, least int) []byte {
	if len(b) >= least {
		return b
	}
	n := max(0, least-len(b)-8)
	b = binary.LittleEndian.AppendUint32(b, 0x184d2a50)
	b = binary.LittleEndian.AppendUint32(b, uint32(n)) //nolint:gosec // at most MaxRun / MaxRatio
	return append(b, make([]byte, n)...)
}
