package logs

import (
	"context"
	"os"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// SetSync puts something in the place of the wait for the disk.
func (s *Store) SetSync(f func(*os.File) error) { s.sync = f }

// SetWrite puts something in the place of writing.
func (s *Store) SetWrite(f func(f *os.File, p []byte, at int64) error) { s.write = f }

// SetBounds puts smaller bounds in the place of MaxOpen and MaxFiles.
func (s *Store) SetBounds(open, files int) { s.maxOpen, s.maxFiles = open, files }

// Files is how many files logs keep open.
func (s *Store) Files() int { return int(s.files.Load()) }

// RecordBytes is what a stored frame takes besides its bytes.
const RecordBytes = recordBytes

// CloseEnded is one look of Run.
func (s *Store) CloseEnded(ctx context.Context, now forge.Instant, seen map[forge.AttemptID]forge.Instant) {
	s.closeEnded(ctx, now, seen)
}

// SegmentPath is where a segment stands.
func (s *Store) SegmentPath(attempt forge.AttemptID, first forge.LogSeq) string {
	return segmentPath(s.cfg.Dir+"/"+attempt.String(), first)
}

// Pack packs whatever will not grow, without a rest.
func (s *Store) Pack(ctx context.Context) {
	s.sweep(ctx, 0)
}

// PackedPath is where a packed segment stands.
func (s *Store) PackedPath(attempt forge.AttemptID, first forge.LogSeq) string {
	return packedPath(s.cfg.Dir+"/"+attempt.String(), first)
}

// Bounds of a search.
const (
	SearchBytes = searchBytes
	MaxLine     = maxLine
	MaxHeld     = maxHeld
)

// DecodeBlock decodes a block that must have n bytes.
func (s *Store) DecodeBlock(packed []byte, n int) ([]byte, error) {
	return s.codec.decode(make([]byte, n), packed, n)
}
