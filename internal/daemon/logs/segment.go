package logs

import (
	"bufio"
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
	// indexEvery is the distance between two entries of its index, in bytes of the file.
	indexEvery = 256 << 10
	// maxEntries bounds an index: no entry is closer to the next than indexEvery.
	maxEntries = SegmentBytes/indexEvery + 1
	// readBuffer is what a reader holds of a segment.
	readBuffer = 64 << 10
)

// entry is a place in a segment where a frame begins.
type entry struct {
	seq    forge.LogSeq
	offset int64
	time   forge.WallTime
	raw    uint64 // bytes of all frames of the log before it
}

// segment is one file of a log, as far as it was written or read.
type segment struct {
	first   forge.LogSeq
	entries []entry // ascending; the first is at the segment's first frame
	size    int64   // bytes of the file behind which nothing is known
	end     forge.LogSeq
	raw     uint64 // bytes of all frames of the log up to its end
}

// note takes a frame at the segment's end into the index.
func (s *segment) note(f forge.LogFrame) {
	if n := len(s.entries); n == 0 || s.size-s.entries[n-1].offset >= indexEvery {
		s.entries = append(s.entries, entry{f.Seq, s.size, f.Time, s.raw})
	}
	s.size += int64(recordBytes + len(f.Bytes))
	s.end = f.Seq + 1
	s.raw += uint64(len(f.Bytes))
}

// before returns the last place at or before a frame.
func (s *segment) before(seq forge.LogSeq) entry {
	i, found := slices.BinarySearchFunc(s.entries, seq, func(e entry, seq forge.LogSeq) int {
		return int(int64(e.seq) - int64(seq))
	})
	if !found {
		i--
	}
	return s.entries[max(i, 0)]
}

// newSegment returns an empty segment that begins behind the log's first bytes.
func newSegment(first forge.LogSeq, raw uint64) segment {
	return segment{first: first, size: int64(len(magic)), end: first, raw: raw}
}

func segmentPath(dir string, first forge.LogSeq) string {
	return filepath.Join(dir, fmt.Sprintf("%020d", uint64(first)))
}

func indexPath(dir string, first forge.LogSeq) string { return segmentPath(dir, first) + ".idx" }

// listSegments returns the first frames of the segments in a folder, ascending. A folder that is not there has none;
// what is no segment is left alone.
func listSegments(dir string) ([]forge.LogSeq, error) {
	files, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var firsts []forge.LogSeq
	for _, f := range files {
		n, err := strconv.ParseUint(f.Name(), 10, 64)
		if err == nil && n > 0 && f.Type().IsRegular() && len(f.Name()) == 20 && !strings.HasPrefix(f.Name(), "+") {
			firsts = append(firsts, forge.LogSeq(n))
		}
	}
	return firsts, nil // ReadDir sorts by name, and the names have one length
}

// scan reads the frames of a segment up to one that is not meant any more, and hands each to visit, which may be nil. It
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

// indexMagic begins an index file; the last byte is the version of the format.
const indexMagic = "FYIDX\x00\x00\x01"

// saveIndex writes the index of a segment that will not grow. It need not survive anything: a segment without one is
// scanned.
func saveIndex(dir string, s *segment) error {
	out := []byte(indexMagic)
	for _, v := range []uint64{uint64(s.first), uint64(s.end), uint64(s.size), s.raw, uint64(len(s.entries))} {
		out = binary.BigEndian.AppendUint64(out, v)
	}
	for _, e := range s.entries {
		for _, v := range []uint64{uint64(e.seq), uint64(e.offset), uint64(e.time), e.raw} {
			out = binary.BigEndian.AppendUint64(out, v)
		}
	}
	out = binary.BigEndian.AppendUint64(out, indexSum(out))
	name := indexPath(dir, s.first)
	if err := os.WriteFile(name+".new", out, 0o600); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

// loadIndex reads what saveIndex wrote for a segment that begins behind raw bytes of its log, and reports whether it is
// whole and belongs to the file beside it.
func loadIndex(dir string, first forge.LogSeq, raw uint64) (segment, bool) {
	data, err := os.ReadFile(indexPath(dir, first))
	head := len(indexMagic) + 5*8
	if err != nil || len(data) < head+8 || len(data) > head+8+maxEntries*32 || string(data[:len(indexMagic)]) != indexMagic {
		return segment{}, false
	}
	number := func(at int) uint64 { return binary.BigEndian.Uint64(data[at:]) }
	body := data[:len(data)-8]
	n := number(head - 8)
	if number(len(body)) != indexSum(body) || n == 0 || uint64(len(body)-head) != n*32 {
		return segment{}, false
	}
	s := segment{
		first: forge.LogSeq(number(8)), end: forge.LogSeq(number(16)), size: int64(number(24)), raw: number(32),
	}
	for at := head; at < len(body); at += 32 {
		s.entries = append(s.entries, entry{
			forge.LogSeq(number(at)), int64(number(at + 8)), forge.WallTime(number(at + 16)), number(at + 24),
		})
	}
	info, err := os.Stat(segmentPath(dir, first))
	whole := err == nil && info.Size() >= s.size && s.first == first && s.entries[0].seq == first && s.entries[0].raw == raw
	return s, whole
}

func indexSum(data []byte) uint64 { return uint64(crc32.Checksum(data, castagnoli)) }
