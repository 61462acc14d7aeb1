package logs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// recordBytes is the length of a stored frame without its bytes.
const recordBytes = 24

// magic begins each segment; the last byte is the version of the format.
const magic = "FYLOG\x00\x00\x01"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// errTorn says that what follows in a segment is no whole frame.
var errTorn = errors.New("no whole frame")

// appendRecord appends the stored form of a frame, which is valid.
func appendRecord(dst []byte, f forge.LogFrame) []byte {
	at := len(dst)
	dst = binary.BigEndian.AppendUint32(dst, uint32(f.Stream)<<24|uint32(len(f.Bytes)))
	dst = append(dst, 0, 0, 0, 0)
	dst = binary.BigEndian.AppendUint64(dst, uint64(f.Seq))
	dst = binary.BigEndian.AppendUint64(dst, uint64(f.Time))
	dst = append(dst, f.Bytes...)
	binary.BigEndian.PutUint32(dst[at+4:], checksum(dst[at:]))
	return dst
}

// checksum covers everything of a stored frame but the sum itself.
func checksum(record []byte) uint32 {
	sum := crc32.Update(0, castagnoli, record[:4])
	return crc32.Update(sum, castagnoli, record[8:])
}

// recordReader reads the frames of one segment. It holds one buffer and belongs to one reader.
type recordReader struct {
	r   io.Reader
	buf []byte
}

// next returns the next frame, whose bytes are valid until the next call. It returns io.EOF behind the last one, and
// errTorn where there is none although something follows.
func (r *recordReader) next() (forge.LogFrame, error) {
	var head [recordBytes]byte
	if n, err := io.ReadFull(r.r, head[:]); err != nil {
		return forge.LogFrame{}, tornAfter(n, err)
	}
	first := binary.BigEndian.Uint32(head[:])
	length := int(first & 0xffffff)
	f := forge.LogFrame{
		Seq:    forge.LogSeq(binary.BigEndian.Uint64(head[8:])),
		Stream: forge.LogStream(first >> 24),
		Time:   forge.WallTime(binary.BigEndian.Uint64(head[16:])),
	}
	if length == 0 || length > forge.MaxLogPayload {
		return forge.LogFrame{}, errTorn
	}
	if cap(r.buf) < recordBytes+length {
		r.buf = make([]byte, recordBytes+forge.MaxLogPayload)
	}
	record := r.buf[:recordBytes+length]
	copy(record, head[:])
	if n, err := io.ReadFull(r.r, record[recordBytes:]); err != nil {
		return forge.LogFrame{}, tornAfter(n+recordBytes, err)
	}
	if checksum(record) != binary.BigEndian.Uint32(head[4:]) {
		return forge.LogFrame{}, errTorn
	}
	f.Bytes = record[recordBytes:]
	return f, nil
}

// tornAfter tells the end of a segment from a frame that was cut off, and both from a disk that cannot be read.
func tornAfter(n int, err error) error {
	switch {
	case !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("read segment: %w", err)
	case n == 0:
		return io.EOF
	default:
		return errTorn
	}
}
