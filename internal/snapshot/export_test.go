package snapshot

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Effort is what a capture had to do.
type Effort struct {
	Read          int64
	Lists, Cleans int
}

// TakeLater is Take by a clock that is so much ahead: to it, what changed just now has rested for long.
func TakeLater(ctx context.Context, o Options, sink cas.Sink, ahead time.Duration) (Snapshot, Effort, error) {
	snap, e, err := takeAt(ctx, o, sink, func() time.Time { return time.Now().Add(ahead) })
	return snap, Effort{e.read, e.lists, e.cleans}, err
}

// Restamp makes an index believe that it has seen the stamps that are on disk now, as if a file system's clock were so coarse
// that a change left no trace.
func Restamp(t *testing.T, file, root string, git bool) {
	t.Helper()
	x := loadIndex(file, root, git)
	for i := range x.folders {
		f := &x.folders[i]
		f.stamp = stampNow(t, filepath.Join(root, f.path))
		for j := range f.entries {
			f.entries[j].stamp = stampNow(t, filepath.Join(root, f.path, f.entries[j].name))
		}
	}
	if err := x.save(file); err != nil {
		t.Fatal(err)
	}
}

func stampNow(t *testing.T, path string) stamp {
	t.Helper()
	s, err := stampAt(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return s
}

// DecodeIndex reports whether data is an index, and gives back what it would be written as.
func DecodeIndex(data []byte) ([]byte, bool) {
	x, err := decodeIndex(data)
	if err != nil {
		return nil, false
	}
	return x.encode(), true
}

// Sum puts the checksum of an index behind its body.
func Sum(body []byte) []byte {
	sum := digest.Of(body)
	return append(bytes.Clone(body), sum[:]...)
}
