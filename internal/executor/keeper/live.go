package keeper

import (
	"errors"
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Live are the attempts of an executor that have a workload, each one at most. The zero value has none. It may be used by
// several goroutines at once.
type Live struct {
	mu  sync.Mutex
	ids map[forge.AttemptID]bool
}

var errLive = errors.New("the attempt has a workload already")

// Take registers an attempt, and refuses one that is there.
func (l *Live) Take(id forge.AttemptID) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ids[id] {
		return errLive
	}
	if l.ids == nil {
		l.ids = map[forge.AttemptID]bool{}
	}
	l.ids[id] = true
	return nil
}

// Drop gives an attempt up.
func (l *Live) Drop(id forge.AttemptID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ids, id)
}

// Has reports whether an attempt is there, by its id as text.
func (l *Live) Has(id string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for live := range l.ids {
		if live.String() == id {
			return true
		}
	}
	return false
}
