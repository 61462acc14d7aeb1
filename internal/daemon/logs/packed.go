package logs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// A packed segment is a Zstandard file whose content is the plain segment. It has a frame for each entry of the index, which
// can be decoded without the others, and behind them the index in a frame that decoders skip:
//
//	frame of the bytes before the second entry | frame of those before the third | … | 0x184D2A5F u32, length u32 (little-endian),
//	index, length of the index u64 (big-endian)
const (
	skipMagic  = 0x184D2A5F
	skipHead   = 8
	lengthTail = 8
	// maxBlock is the most that one frame has when decoded: an entry's distance, and the frame that passes it.
	maxBlock = len(magic) + indexEvery + recordBytes + forge.MaxLogPayload
	// maxPacked is the most that it has on disk: what cannot be compressed grows a little.
	maxPacked = maxBlock + 4<<10
)

// block returns where the bytes of an entry stand, in the plain segment and in the packed one.
func (s *segment) block(i int) (plain, packed span) {
	plain, packed = span{s.entries[i].offset, s.size}, span{s.entries[i].packed, s.packed}
	if i == 0 {
		plain.from = 0
	}
	if i+1 < len(s.entries) {
		plain.to, packed.to = s.entries[i+1].offset, s.entries[i+1].packed
	}
	return plain, packed
}

// span is a range of bytes in a file.
type span struct{ from, to int64 }

func (s span) len() int { return int(s.to - s.from) }

func (s span) within(most int) bool {
	return s.from >= 0 && s.from < s.to && s.to-s.from <= int64(most)
}

// codec compresses and decodes blocks.
type codec struct {
	encoder *zstd.Encoder // used by one goroutine at a time
	decoder *zstd.Decoder
}

// newCodec fails on settings only.
func newCodec() (*codec, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedDefault),
		zstd.WithWindowSize(indexEvery*2), zstd.WithLowerEncoderMem(true), zstd.WithEncoderCRC(false)) // each record has its own sum
	if err != nil {
		return nil, err
	}
	decoder, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecodeAllCapLimit(true),
		zstd.WithDecoderMaxWindow(indexEvery*2))
	if err != nil {
		return nil, err
	}
	return &codec{encoder, decoder}, nil
}

// decode appends what a block holds to dst, which has room for just that: n bytes, neither more nor fewer.
func (c *codec) decode(dst, packed []byte, n int) ([]byte, error) {
	out, err := c.decoder.DecodeAll(packed, dst[:0:n])
	if err != nil || len(out) != n {
		return nil, fmt.Errorf("%w: a block of %d bytes cannot be decoded: %w", ErrCorrupt, n, errors.Join(err, errLength(len(out), n)))
	}
	return out, nil
}

func errLength(got, want int) error {
	if got == want {
		return nil
	}
	return fmt.Errorf("it has %d bytes", got)
}

// pack writes a plain segment as a packed one, and returns it with the places of its blocks. Every block is decoded again and
// compared, since the plain segment will be gone.
func (c *codec) pack(w io.Writer, plain io.ReaderAt, s segment) (segment, error) {
	s.entries = append([]entry(nil), s.entries...)
	in, out, again := make([]byte, maxBlock), make([]byte, 0, maxPacked), make([]byte, maxBlock)
	at := int64(0)
	for i := range s.entries {
		from, _ := s.block(i)
		if !from.within(maxBlock) {
			return s, fmt.Errorf("%w: a block of %d bytes", ErrCorrupt, from.len())
		}
		block := in[:from.len()]
		if _, err := plain.ReadAt(block, from.from); err != nil {
			return s, err
		}
		out = c.encoder.EncodeAll(block, out[:0])
		if back, err := c.decode(again, out, len(block)); err != nil || !bytes.Equal(back, block) {
			return s, errors.Join(errors.New("what was compressed does not decode to what it was"), err)
		}
		s.entries[i].packed = at
		if _, err := w.Write(out); err != nil {
			return s, err
		}
		at += int64(len(out))
	}
	s.packed = at
	_, err := w.Write(trailer(&s))
	return s, err
}

// trailer is what stands behind the blocks.
func trailer(s *segment) []byte {
	index := appendIndex(nil, s)
	out := binary.LittleEndian.AppendUint32(nil, skipMagic)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(index)+lengthTail))
	out = append(out, index...)
	return binary.BigEndian.AppendUint64(out, uint64(len(index)))
}

// loadPacked reads the index of a packed segment, and reports whether it is whole and belongs where another one ends.
func loadPacked(dir string, begin *segment) (segment, bool) {
	file, err := os.Open(packedPath(dir, begin.first))
	if err != nil {
		return segment{}, false
	}
	defer file.Close() //nolint:errcheck // nothing was written
	info, err := file.Stat()
	if err != nil {
		return segment{}, false
	}
	end := make([]byte, min(info.Size(), int64(maxIndex+lengthTail)))
	if _, err := file.ReadAt(end, info.Size()-int64(len(end))); err != nil || len(end) < lengthTail {
		return segment{}, false
	}
	body := end[:len(end)-lengthTail]
	n := binary.BigEndian.Uint64(end[len(body):])
	if n > uint64(len(body)) {
		return segment{}, false
	}
	s, ok := parseIndex(body[len(body)-int(n):], begin)
	if !ok || s.packed+skipHead+int64(n)+lengthTail != info.Size() {
		return segment{}, false
	}
	for i := range s.entries {
		if plain, packed := s.block(i); !plain.within(maxBlock) || !packed.within(maxPacked) {
			return segment{}, false
		}
	}
	return s, true
}

// blocks reads a packed segment from one of its blocks on, as the plain one. It holds one block.
type blocks struct {
	codec   *codec
	file    io.ReaderAt
	segment segment
	next    int // block
	packed  []byte
	plain   []byte
	rest    []byte // of plain, not read yet
}

// Read implements io.Reader.
func (b *blocks) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.next == len(b.segment.entries) {
			return 0, io.EOF
		}
		if err := b.load(); err != nil {
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// load decodes the next block.
func (b *blocks) load() error {
	plain, packed := b.segment.block(b.next)
	if b.plain == nil {
		b.packed, b.plain = make([]byte, maxPacked), make([]byte, maxBlock)
	}
	in := b.packed[:packed.len()]
	if _, err := b.file.ReadAt(in, packed.from); err != nil {
		if errors.Is(err, io.EOF) {
			err = ErrCorrupt
		}
		return err
	}
	out, err := b.codec.decode(b.plain, in, plain.len())
	if err != nil {
		return err
	}
	b.rest = out[b.segment.entries[b.next].offset-plain.from:] // the first frame stands behind the magic
	b.next++
	return nil
}
