package logs

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of a segment.
const (
	// SegmentBytes is the most that one segment has.
	SegmentBytes = 8 << 20
	// indexEvery is the distance between two entries of its index, in bytes of the file, and so about what is compressed at once.
	indexEvery = 256 << 10
	// maxEntries bounds an index: no entry is closer to the next than indexEvery.
	maxEntries = SegmentBytes/indexEvery + 1
	// readBuffer is what a reader holds of a segment.
	readBuffer = 64 << 10
)

// entry is a place in a segment where a frame begins.
type entry struct {
	seq    forge.LogSeq
	offset int64 // in the plain segment
	time   forge.WallTime
	raw    uint64 // bytes of all frames of the log before it
	output uint64 // of those, the workload's
	packed int64  // where the block that begins here stands in the packed segment
}

// segment is one file of a log, as far as it was written or read. Where it is packed, size is still that of the plain one.
type segment struct {
	first   forge.LogSeq
	entries []entry // ascending; the first is at the segment's first frame
	size    int64   // bytes of the file behind which nothing is known
	end     forge.LogSeq
	raw     uint64 // bytes of all frames of the log up to its end
	output  uint64 // of those, the workload's
	packed  int64  // where the last block ends in the packed segment; 0: it is plain
}

// note takes a frame at the segment's end into the index.
func (s *segment) note(f forge.LogFrame) {
	if n := len(s.entries); n == 0 || s.size-s.entries[n-1].offset >= indexEvery {
		s.entries = append(s.entries, entry{seq: f.Seq, offset: s.size, time: f.Time, raw: s.raw, output: s.output})
	}
	s.size += int64(recordBytes + len(f.Bytes))
	s.end = f.Seq + 1
	s.raw += uint64(len(f.Bytes))
	if isOutput(f.Stream) {
		s.output += uint64(len(f.Bytes))
	}
}

// isOutput reports whether a frame is the workload's.
func isOutput(stream forge.LogStream) bool {
	return stream == forge.LogStdout || stream == forge.LogStderr
}

// before returns the index of the last place at or before a frame.
func (s *segment) before(seq forge.LogSeq) int {
	i, found := slices.BinarySearchFunc(s.entries, seq, func(e entry, seq forge.LogSeq) int { return cmp.Compare(e.seq, seq) })
	if !found {
		i--
	}
	return max(i, 0)
}

// newSegment returns an empty segment that begins behind another, or at the beginning of the log.
func newSegment(before *segment) segment {
	s := segment{first: 1, size: int64(len(magic)), end: 1}
	if before != nil {
		s.first, s.end, s.raw, s.output = before.end, before.end, before.raw, before.output
	}
	return s
}

func segmentPath(dir string, first forge.LogSeq) string {
	return filepath.Join(dir, fmt.Sprintf("%020d", uint64(first)))
}

// What the names of files beside a plain segment end with.
const (
	indexSuffix  = ".idx"
	packedSuffix = ".zst"
	newSuffix    = ".new" // of what was not put in its place yet
)

func indexPath(dir string, first forge.LogSeq) string { return segmentPath(dir, first) + indexSuffix }

func packedPath(dir string, first forge.LogSeq) string { return segmentPath(dir, first) + packedSuffix }

// found is a segment in a folder.
type found struct {
	first         forge.LogSeq
	plain, packed bool // both: the machine stopped between putting the one in place and removing the other
	plainBytes    int64
}

// listSegments returns the segments in a folder, ascending. A folder that is not there has none; what is no segment is left
// alone.
func listSegments(dir string) ([]found, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []found
	for _, f := range files { // sorted by name, and the numbers have one length
		name, packed := strings.CutSuffix(f.Name(), packedSuffix)
		n, err := strconv.ParseUint(name, 10, 64)
		if err != nil || n == 0 || !f.Type().IsRegular() || len(name) != 20 {
			continue
		}
		if len(list) == 0 || list[len(list)-1].first != forge.LogSeq(n) {
			list = append(list, found{first: forge.LogSeq(n)})
		}
		one := &list[len(list)-1]
		if packed {
			one.packed = true
			continue
		}
		one.plain = true
		if info, err := f.Info(); err == nil {
			one.plainBytes = info.Size()
		}
	}
	return list, nil
}

// scan reads the frames of a plain segment up to one that is not meant any more, and hands each to visit, which may be nil. It
// stops without an error where no whole frame in order follows.
func scan(dir string, s *segment, limit forge.LogSeq, visit func(forge.LogFrame)) error {
	file, err := os.Open(segmentPath(dir, s.first))
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // nothing was written
	r := bufio.NewReaderSize(file, readBuffer)
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(r, head); err != nil || string(head) != magic {
		return nil // torn before its first frame
	}
	records := &recordReader{r: r}
	for s.end < limit {
		f, err := records.next()
		if errors.Is(err, io.EOF) || errors.Is(err, errTorn) || err == nil && f.Seq != s.end {
			return nil
		}
		if err != nil {
			return err
		}
		s.note(f)
		if visit != nil {
			visit(f)
		}
	}
	return nil
}

// indexMagic begins an index; the last byte is the version of the format.
const indexMagic = "FYIDX\x00\x00\x02"

// The parts of an index, in bytes.
const (
	indexHead  = len(indexMagic) + 7*8
	entryBytes = 6 * 8
	maxIndex   = indexHead + maxEntries*entryBytes + 8
)

// appendIndex appends the index of a segment that will not grow.
func appendIndex(dst []byte, s *segment) []byte {
	at := len(dst)
	dst = append(dst, indexMagic...)
	for _, v := range []uint64{uint64(s.first), uint64(s.end), uint64(s.size), s.raw, s.output, uint64(s.packed), uint64(len(s.entries))} {
		dst = binary.BigEndian.AppendUint64(dst, v)
	}
	for _, e := range s.entries {
		for _, v := range []uint64{uint64(e.seq), uint64(e.offset), uint64(e.time), e.raw, e.output, uint64(e.packed)} {
			dst = binary.BigEndian.AppendUint64(dst, v)
		}
	}
	return binary.BigEndian.AppendUint64(dst, indexSum(dst[at:]))
}

// parseIndex reads an index and reports whether it is whole and could be that of the segment which begins where another one
// ends.
func parseIndex(data []byte, begin *segment) (segment, bool) {
	if len(data) < indexHead+8 || len(data) > maxIndex || string(data[:len(indexMagic)]) != indexMagic {
		return segment{}, false
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(data[at:]) }
	body := data[:len(data)-8]
	n := number(indexHead - 8)
	if number(len(body)) != indexSum(body) || n == 0 || uint64(len(body)-indexHead) != n*uint64(entryBytes) {
		return segment{}, false
	}
	s := segment{
		first: forge.LogSeq(number(8)), end: forge.LogSeq(number(16)), size: int64(number(24)), raw: number(32), output: number(40),
		packed: int64(number(48)),
	}
	for at := indexHead; at < len(body); at += entryBytes {
		s.entries = append(s.entries, entry{
			forge.LogSeq(number(at)), int64(number(at + 8)), forge.WallTime(number(at + 16)), number(at + 24), number(at + 32), int64(number(at + 40)),
		})
	}
	e := s.entries[0]
	return s, s.first == begin.first && e.seq == begin.first && e.raw == begin.raw && e.output == begin.output && e.offset == begin.size
}

// saveIndex writes the index of a plain segment. It need not survive anything: a segment without one is scanned.
func saveIndex(dir string, s *segment) error {
	name := indexPath(dir, s.first)
	if err := os.WriteFile(name+newSuffix, appendIndex(nil, s), 0o600); err != nil {
		return err
	}
	return os.Rename(name+newSuffix, name)
}

// loadIndex reads what saveIndex wrote, and reports whether it is whole and belongs to the file beside it.
func loadIndex(dir string, begin *segment) (segment, bool) {
	data, err := os.ReadFile(indexPath(dir, begin.first))
	if err != nil {
		return segment{}, false
	}
	s, ok := parseIndex(data, begin)
	info, err := os.Stat(segmentPath(dir, begin.first))
	return s, ok && err == nil && s.packed == 0 && info.Size() >= s.size
}

func indexSum(data []byte) uint64 { return uint64(crc32.Checksum(data, castagnoli)) }
