package logspool

import (
	"encoding/binary"
	"errors"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// A frame in a file is length u32 | stream u8 | time i64 | bytes, big-endian. Its number follows from the file's name and
// the frames before it.
const headerBytes = 13

// errFrame says that bytes are no frame: they were damaged, or written by something else.
var errFrame = errors.New("logspool: damaged file")

func appendHeader(b []byte, stream forge.LogStream, n int, at forge.WallTime) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(n))
	b = append(b, byte(stream))
	return binary.BigEndian.AppendUint64(b, uint64(at))
}

// parseFrame reads one frame and returns its size in the file, or 0 where b ends within it. The frame shares b.
func parseFrame(b []byte, seq forge.LogSeq) (forge.LogFrame, int, error) {
	if len(b) < headerBytes {
		return forge.LogFrame{}, 0, nil
	}
	n := binary.BigEndian.Uint32(b)
	f := forge.LogFrame{Seq: seq, Stream: forge.LogStream(b[4]), Time: forge.WallTime(binary.BigEndian.Uint64(b[5:]))}
	if n == 0 || n > forge.MaxLogPayload || !f.Stream.Valid() {
		return forge.LogFrame{}, 0, errFrame
	}
	size := headerBytes + int(n)
	if len(b) < size {
		return forge.LogFrame{}, 0, nil
	}
	f.Bytes = b[headerBytes:size:size]
	return f, size, nil
}
