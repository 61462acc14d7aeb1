package keeper

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestAWalkThroughAFolderComesWhenItMayBeOverItsLimit(t *testing.T) {
	now := time.Now()
	for what, c := range map[string]struct {
		q     quota
		free  uint64
		want  bool
		names uint64
	}{
		"nothing was written":                {quota{limit: 100, free: 1000, at: now.Add(-time.Second)}, 1000, false, 0},
		"a little":                           {quota{limit: 100, free: 1000, at: now.Add(-time.Second)}, 960, false, 0},
		"half of what is left":               {quota{limit: 100, used: 60, free: 1000, at: now.Add(-time.Second)}, 975, true, 0},
		"somebody else has freed more":       {quota{limit: 100, free: 1000, at: now.Add(-time.Second)}, 2000, false, 0},
		"and that was long ago":              {quota{limit: 100, free: 1000, at: now.Add(-quotaLeast)}, 2000, true, 0},
		"the last walk took long":            {quota{limit: 100, free: 1000, at: now.Add(-time.Second), took: time.Second}, 100, false, 0},
		"and that was as long ago as is due": {quota{limit: 100, free: 1000, at: now.Add(-quotaShare * time.Second), took: time.Second}, 100, true, 0},
		"names are used up":                  {quota{limit: 100_000, free: 1000, names: 50, at: now.Add(-time.Second)}, 1000, true, 30},
	} {
		if got := c.q.due(c.free, c.names, now); got != c.want {
			t.Errorf("%s: %v", what, got)
		}
	}
}

func TestWhatWasThereBeforeIsNotCounted(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size forge.Bytes) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("before", 4*forge.MiB)
	q, err := newQuota(t.Context(), dir, os.Getpid(), forge.MiB)
	if err != nil {
		t.Fatal(err)
	}
	write("within", forge.MiB/2)
	later := time.Now().Add(time.Hour)
	if over, err := q.look(t.Context(), later); over || err != nil {
		t.Errorf("half of it: %v, %v", over, err)
	}
	write("beyond", forge.MiB)
	over, err := q.look(t.Context(), later.Add(time.Hour))
	if o := q.overran(); !over || err != nil || o.Limit != uint64(forge.MiB) || o.Peak < uint64(3*forge.MiB/2) || o.Peak > uint64(2*forge.MiB) {
		t.Errorf("%v, %v, %+v", over, err, o)
	}
}

// TestEmptyFilesCountToo: they have no blocks, but a disk has room for so many names only.
func TestEmptyFilesCountToo(t *testing.T) {
	dir := t.TempDir()
	q, err := newQuota(t.Context(), dir, os.Getpid(), forge.MiB)
	if err != nil {
		t.Fatal(err)
	}
	for i := range int(forge.MiB/nameBytes) + 8 {
		if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if over, err := q.look(t.Context(), time.Now().Add(time.Hour)); !over || err != nil {
		t.Errorf("%v, %v, used %d", over, err, q.used)
	}
}
