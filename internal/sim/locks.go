package sim

import (
	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// rowLock is the lock of one row. Requests are served in order, so that a writer does not starve.
type rowLock struct {
	holders []grantedLock
	waiting []waitingLock
}

type grantedLock struct {
	t    *txn
	mode authority.Lock
}

type waitingLock struct {
	t    *txn
	mode authority.Lock
}

// lockOf returns the lock that a statement takes, or nil where it takes none.
func (s *store) lockOf(key authority.Key) *rowLock {
	switch key.Table {
	case authority.TableSession:
		return &row(s.sessions, forge.RunnerID{ULID: key.ID}).lock
	case authority.TableFolder:
		return &row(s.folders, folderKey{forge.RunnerID{ULID: key.ID}, forge.StateFolderID{ULID: key.Sub}}).lock
	case authority.TableBeat:
		return &row(s.beats, forge.RunnerID{ULID: key.ID}).lock
	case authority.TableRunner:
		return &row(s.runners, forge.RunnerID{ULID: key.ID}).lock
	case authority.TableJob:
		return &row(s.jobs, forge.JobID{ULID: key.ID}).lock
	case authority.TableLease, authority.TableHeld:
		return &row(s.leases, forge.LeaseID{ULID: key.ID}).lock
	case authority.TableLog:
		return &row(s.logs, forge.AttemptID{ULID: key.ID}).lock
	}
	return nil
}

// acquire takes a lock, or queues for it and reports false; then advance is called again when it is free.
func (s *store) acquire(t *txn, key authority.Key) bool {
	l := s.lockOf(key)
	if l == nil || l.holds(t, key.Lock) {
		return true
	}
	if len(l.waiting) > 0 || !l.free(key.Lock) {
		l.waiting = append(l.waiting, waitingLock{t, key.Lock})
		return false
	}
	l.holders = append(l.holders, grantedLock{t, key.Lock})
	t.held = append(t.held, l)
	return true
}

func (l *rowLock) holds(t *txn, mode authority.Lock) bool {
	for _, h := range l.holders {
		if h.t == t && h.mode >= mode {
			return true
		}
	}
	return false
}

func (l *rowLock) free(mode authority.Lock) bool {
	if len(l.holders) == 0 {
		return true
	}
	if mode == authority.Update {
		return false
	}
	for _, h := range l.holders {
		if h.mode == authority.Update {
			return false
		}
	}
	return true
}

// release ends every lock of a transaction and lets those who waited go on.
func (s *store) release(t *txn) {
	for _, l := range t.held {
		kept := l.holders[:0]
		for _, h := range l.holders {
			if h.t != t {
				kept = append(kept, h)
			}
		}
		l.holders = kept
		s.serve(l)
	}
	t.held = t.held[:0]
}

// serve grants a lock to those at the head of its queue.
func (s *store) serve(l *rowLock) {
	for len(l.waiting) > 0 && l.free(l.waiting[0].mode) {
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		if next.t.owner.life != next.t.life {
			s.release(next.t)
			continue
		}
		l.holders = append(l.holders, grantedLock(next))
		next.t.held = append(next.t.held, l)
		s.w.at(s.ready(0), func() { s.advance(next.t) })
	}
}
