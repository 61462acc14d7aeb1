package disk

import (
	"errors"
	"path/filepath"
	"sync"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// flushTogether is from how many objects on the whole file system is flushed instead of each file.
const flushTogether = 32

// written is an object that is complete in a temporary file and not yet under its name.
type written struct {
	ref  digest.Ref
	temp string
}

// flushes lets callers who come together share one flush: while a group is on its way to the disk, the next gathers.
type flushes struct {
	turn chan struct{} // held by the group that is being flushed

	mu        sync.Mutex
	gathering *group
	under     map[digest.Ref]*group // objects whose names may be seen before they are durable
}

type group struct {
	objects []written
	done    chan struct{}
	err     error // once done is closed
}

func newFlushes() flushes {
	return flushes{turn: make(chan struct{}, 1), under: make(map[digest.Ref]*group)}
}

// of returns the group that an object is being flushed with, or nil.
func (f *flushes) of(ref digest.Ref) *group {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.under[ref]
}

// join adds objects to the group that gathers. The one who began it leads it.
func (f *flushes) join(objects []written) (g *group, leader bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gathering == nil {
		f.gathering, leader = &group{done: make(chan struct{})}, true
	}
	g = f.gathering
	g.objects = append(g.objects, objects...)
	for _, o := range objects {
		f.under[o.ref] = g
	}
	return g, leader
}

// settle gives objects their names, for good where the store is durable. It takes over the room that was reserved for
// them. It is not interrupted: others may be waiting for the same flush.
func (s *Store) settle(objects ...written) error {
	if len(objects) == 0 {
		return nil
	}
	if !s.options.Durable {
		return s.name(objects)
	}
	g, leader := s.flushes.join(objects)
	if !leader {
		<-g.done
		return g.err
	}
	s.flushes.turn <- struct{}{}
	s.flushes.mu.Lock()
	s.flushes.gathering = nil
	s.flushes.mu.Unlock()

	g.err = s.flush(g.objects)

	s.flushes.mu.Lock()
	for _, o := range g.objects {
		if s.flushes.under[o.ref] == g {
			delete(s.flushes.under, o.ref)
		}
	}
	s.flushes.mu.Unlock()
	close(g.done)
	<-s.flushes.turn
	return g.err
}

// flush makes the bytes durable, then the names.
func (s *Store) flush(objects []written) error {
	if err := s.flushBytes(objects); err != nil {
		for _, o := range objects {
			s.drop(o)
		}
		return err
	}
	if err := s.name(objects); err != nil {
		return err
	}
	err := s.flushNames(objects)
	if err != nil {
		s.unname(objects)
	}
	return err
}

// unname takes back names that could not be made durable: whoever found them later would take them for durable.
func (s *Store) unname(objects []written) {
	for _, o := range objects {
		s.discard(s.path(o.ref.Digest))
		s.lose(o.ref.Bytes)
	}
}

func (s *Store) flushBytes(objects []written) error {
	if len(objects) >= flushTogether {
		if err := s.files.syncAll(s.layout.dir); !errors.Is(err, errors.ErrUnsupported) {
			return noRoom(err)
		}
	}
	for _, o := range objects {
		if err := s.files.syncFile(o.temp); err != nil {
			return noRoom(err)
		}
	}
	return nil
}

func (s *Store) flushNames(objects []written) error {
	if len(objects) >= flushTogether {
		if err := s.files.syncAll(s.layout.dir); !errors.Is(err, errors.ErrUnsupported) {
			return noRoom(err)
		}
	}
	done := make(map[string]bool)
	for _, o := range objects {
		folder := s.folder(o.ref.Digest)
		if done[folder] {
			continue
		}
		if err := s.files.syncFolder(folder); err != nil {
			return noRoom(err)
		}
		done[folder] = true
	}
	return nil
}

// name moves objects into their places. What cannot be moved is given up.
func (s *Store) name(objects []written) error {
	var fault error
	for _, o := range objects {
		if fault == nil {
			fault = noRoom(s.files.rename(o.temp, s.path(o.ref.Digest)))
		}
		if fault != nil {
			s.drop(o)
			continue
		}
		s.keep(o.ref.Bytes)
	}
	return fault
}

// drop gives up an object that was written and cannot be kept.
func (s *Store) drop(o written) {
	s.discard(o.temp)
	s.release(o.ref.Bytes, o.ref.Bytes)
}

// discard removes a temporary file. One that stays is removed at the next start.
func (s *Store) discard(temp string) {
	if err := s.files.remove(temp); err != nil {
		s.log.Warn("a temporary file stays until the next start", "file", filepath.Base(temp), "error", err)
	}
}
