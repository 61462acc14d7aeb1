package objects

import (
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// maxKnown bounds the rows that are remembered, about 100 bytes each. With more, all are forgotten: they can be read again.
const maxKnown = 200_000

// known remembers rows that were read or written not long ago. Rows do not go away, so it is never wrong. It saves reading
// rows, and forgets them in time for the next touch.
type known struct {
	mu    sync.Mutex
	rows  map[row]struct{}
	since time.Time
}

type row struct {
	project forge.ProjectName
	ref     digest.Ref
}

func (k *known) has(project forge.ProjectName, ref digest.Ref) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.rows[row{project, ref}]
	return ok && time.Since(k.since) < store.TouchAfter
}

// all reports whether it has the rows of so many objects.
func (k *known) all(project forge.ProjectName, refs []digest.Ref) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if time.Since(k.since) >= store.TouchAfter {
		return false
	}
	for _, ref := range refs {
		if _, ok := k.rows[row{project, ref}]; !ok {
			return false
		}
	}
	return true
}

func (k *known) add(project forge.ProjectName, ref digest.Ref) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.rows == nil || len(k.rows) >= maxKnown || time.Since(k.since) >= store.TouchAfter {
		k.rows, k.since = map[row]struct{}{}, time.Now()
	}
	k.rows[row{project, ref}] = struct{}{}
}

func wallNow() forge.WallTime { return forge.WallTime(clock.Wall().UnixMilli()) }
