package protocol

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
)

// HeaderBytes is the length of a frame's header.
const HeaderBytes = 8

// Header begins a frame: body length u32 | type u16 | schema u8 | reserved u8, big-endian. The reserved byte is zero.
type Header struct {
	Length uint32
	Tag    Tag
}

func (h Header) put(dst []byte) {
	binary.BigEndian.PutUint32(dst, h.Length)
	binary.BigEndian.PutUint16(dst[4:], uint16(h.Tag.Type))
	dst[6], dst[7] = h.Tag.Schema, 0
}

// ParseHeader reads a header and checks its length against the maximum of its type. An unknown type is no error here:
// whoever decodes the body finds out which request it was.
func ParseHeader(raw [HeaderBytes]byte) (Header, error) {
	h := Header{
		Length: binary.BigEndian.Uint32(raw[:]),
		Tag:    Tag{Type: TypeID(binary.BigEndian.Uint16(raw[4:])), Schema: raw[6]},
	}
	if raw[7] != 0 {
		return h, &Violation{Fault: FaultMalformed, Tag: h.Tag, Err: errReserved}
	}
	if most := h.Tag.maxBody(); h.Length > most {
		return h, &Violation{Fault: FaultTooLarge, Tag: h.Tag, Err: fmt.Errorf("a body of %d bytes, at most %d", h.Length, most)}
	}
	return h, nil
}

var errReserved = errors.New("the reserved byte is not zero")

// maxBody is how long a body may be. A schema that this build does not know gets no more than an unknown type.
func (t Tag) maxBody() uint32 {
	if info, ok := LookupTag(t); ok {
		return info.Max
	}
	return MaxUnknownBody
}

// Memory of a FrameReader.
const (
	readChunk = 16 << 10  // a body is given room as it comes, not as it is announced
	keepBytes = 128 << 10 // what is kept between frames: the largest frame of a log, in a buffer that has grown to it
)

// FrameReader takes a stream apart into frames. It holds one buffer and belongs to one reader of the stream.
//
//	for {
//		header, err := frames.Next()   // io.EOF: the stream ended between frames
//		// the gate has a look at header.Tag: nothing of the body was read yet
//		body, err := frames.Body()
//	}
type FrameReader struct {
	r      io.Reader
	raw    [HeaderBytes]byte
	header Header
	buf    []byte
}

// NewFrameReader returns a reader of the frames of r.
func NewFrameReader(r io.Reader) *FrameReader { return &FrameReader{r: r} }

// Next reads the next header. It returns io.EOF where the stream ends before one, io.ErrUnexpectedEOF where it ends
// within one, and a *Violation for a header that is wrong or announces too much. After an error the stream is of no use.
func (f *FrameReader) Next() (Header, error) {
	f.header = Header{}
	if _, err := io.ReadFull(f.r, f.raw[:]); err != nil {
		if errors.Is(err, io.EOF) {
			return Header{}, err
		}
		return Header{}, fmt.Errorf("read frame header: %w", err)
	}
	h, err := ParseHeader(f.raw)
	if err != nil {
		return h, err
	}
	f.header = h
	return h, nil
}

// Body reads the body behind the header that Next returned. The slice is valid until the next call. Room is made while
// bytes arrive, so that a peer which announces much and sends nothing costs little.
func (f *FrameReader) Body() ([]byte, error) {
	length := int(f.header.Length)
	f.header = Header{}
	if cap(f.buf) > keepBytes {
		f.buf = nil
	}
	f.buf = f.buf[:0]
	for len(f.buf) < length {
		have := len(f.buf)
		n := min(length-have, max(readChunk, cap(f.buf)-have))
		f.buf = slices.Grow(f.buf, n)[:have+n]
		if _, err := io.ReadFull(f.r, f.buf[have:]); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("read frame body: %w", err)
		}
	}
	return f.buf, nil
}

// Wipe clears the buffer, after a body that held a secret.
func (f *FrameReader) Wipe() { clear(f.buf[:cap(f.buf)]) }
