package disk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	// looksEvery is after how many bytes written the free space of the file system is asked for again.
	looksEvery = 16 << 20
	// slackPart of the bound is given up beyond what is needed, so that not every object looks through the store.
	slackPart = 20
)

// room is what a store has taken of its bound. Store.mu guards it.
type room struct {
	stored   uint64 // bytes of objects and parts
	reserved uint64 // bytes of what is being written, from before its first byte until it is stored or dropped
	landed   uint64 // of reserved, what is on the disk already
	unlooked uint64 // reserved since the free space was last asked for
	looked   bool
}

// noRoom makes a full disk cas.ErrFull and leaves other errors as they are.
func noRoom(err error) error {
	if err != nil && full(err) && !errors.Is(err, cas.ErrFull) {
		return fmt.Errorf("%w: %w", cas.ErrFull, err)
	}
	return err
}

// reserve takes room for bytes that are going to be written, and makes it where it may. Whoever reserves settles what was
// written, or releases.
func (s *Store) reserve(ctx context.Context, bytes uint64) error {
	s.mu.Lock()
	s.room.reserved += bytes
	s.room.unlooked += bytes
	look := s.options.MinFree > 0 && (!s.room.looked || s.room.unlooked >= looksEvery)
	if look {
		s.room.looked, s.room.unlooked = true, 0
	}
	over := s.overLocked()
	s.mu.Unlock()
	if over == 0 && !look {
		return nil
	}
	if err := s.makeRoom(ctx); err != nil {
		s.release(bytes, 0)
		return err
	}
	return nil
}

// land notes that bytes for which room was reserved have been written.
func (s *Store) land(bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.landed += bytes
}

// release gives back what was reserved, of which so much had landed.
func (s *Store) release(bytes, landed uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.reserved -= bytes
	s.room.landed -= landed
}

// keep makes what was reserved, and has landed, stored.
func (s *Store) keep(bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.stored += bytes
	s.room.reserved -= bytes
	s.room.landed -= bytes
}

// lose notes that stored bytes are gone.
func (s *Store) lose(bytes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.room.stored -= min(s.room.stored, bytes)
}

// overLocked is by how much the store is beyond its bound.
func (s *Store) overLocked() uint64 {
	most, has := uint64(s.options.MaxBytes), s.room.stored+s.room.reserved
	if most == 0 || has <= most {
		return 0
	}
	return has - most
}

// short is how many bytes have to go for the store to be within its bounds, and why.
func (s *Store) short() (uint64, string, error) {
	s.mu.Lock()
	over, coming := s.overLocked(), s.room.reserved-s.room.landed
	s.mu.Unlock()
	if s.options.MinFree > 0 {
		free, err := s.files.free(s.layout.dir)
		if err != nil {
			return 0, "", err
		}
		if want := uint64(s.options.MinFree) + coming; free < want && want-free > over {
			return want - free, fmt.Sprintf("%d bytes are free on the disk of %s and %v are to stay so", free, s.layout.dir, s.options.MinFree), nil
		}
	}
	return over, fmt.Sprintf("%s may hold %v", s.layout.dir, s.options.MaxBytes), nil
}

// makeRoom brings the store within its bounds, or fails with cas.ErrFull.
func (s *Store) makeRoom(ctx context.Context) error {
	select {
	case s.evict <- struct{}{}:
		defer func() { <-s.evict }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	short, why, err := s.short()
	if err != nil || short == 0 {
		return err
	}
	if s.options.Evict {
		if _, err := s.giveUp(ctx, short); err != nil {
			return err
		}
		if short, why, err = s.short(); err != nil || short == 0 {
			return err
		}
	}
	return fmt.Errorf("%w: %s", cas.ErrFull, why)
}

// retry runs a step of writing, and once more where the disk was full and something could be given up.
func (s *Store) retry(ctx context.Context, bytes int, step func() error) error {
	err := step()
	if err == nil || !full(err) || !s.options.Evict {
		return noRoom(err)
	}
	select {
	case s.evict <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	freed, fault := s.giveUp(ctx, uint64(bytes))
	<-s.evict
	if fault != nil {
		return fault
	}
	if freed == 0 {
		return noRoom(err)
	}
	return noRoom(step())
}

// candidate is a file that may be given up.
type candidate struct {
	path  string
	ref   digest.Ref
	bytes uint64 // in the file; of a part, what has arrived
	used  time.Time
	part  bool
	busy  bool // a part that is in use, whose bytes count as reserved
}

// giveUp removes what was used longest ago, until so many bytes and some slack are free or nothing is left that may go. It
// corrects what the store believes to hold on the way.
func (s *Store) giveUp(ctx context.Context, bytes uint64) (freed uint64, err error) {
	var all []candidate
	var stored uint64
	err = s.each(ctx, func(c candidate) {
		if !c.busy {
			all = append(all, c)
			stored += c.bytes
		}
	})
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	s.room.stored = stored
	s.mu.Unlock()
	slack := stored / slackPart
	if s.options.MaxBytes > 0 {
		slack = uint64(s.options.MaxBytes) / slackPart
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(a.used.Compare(b.used), cmp.Compare(a.path, b.path)) })
	removed := 0
	for _, c := range all {
		if freed >= bytes+slack || ctx.Err() != nil {
			break
		}
		gone, err := s.remove(c)
		if err != nil {
			s.log.Warn("cannot give up an object", "object", c.ref.String(), "error", err)
		}
		if gone {
			freed += c.bytes
			removed++
		}
	}
	s.log.Info("made room in the object store", "wanted", bytes, "freed", freed, "files", removed)
	return freed, nil
}

// remove gives up a file, unless somebody needs it.
func (s *Store) remove(c candidate) (bool, error) {
	if s.flushes.of(c.ref) != nil {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.part {
		if _, busy := s.arrival[c.ref]; busy {
			return false, nil
		}
		if err := s.files.remove(c.path + marksEnding); err != nil && !errors.Is(err, os.ErrNotExist) {
			return false, err
		}
	} else if s.pins[c.ref] > 0 {
		return false, nil
	}
	if err := s.files.remove(c.path); err != nil {
		return false, err
	}
	s.room.stored -= min(s.room.stored, c.bytes)
	return true, nil
}

// each visits every object and part. What is neither is left out.
func (s *Store) each(ctx context.Context, visit func(candidate)) error {
	err := s.eachObject(ctx, 0, func(_ string, c candidate, odd error) error {
		if odd == nil {
			visit(c)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.eachPart(visit)
}

// eachPart visits what has arrived of objects.
func (s *Store) eachPart(visit func(candidate)) error {
	parts, err := s.files.list(s.layout.parts())
	if err != nil {
		return err
	}
	for _, p := range parts {
		ref, err := digest.ParseRef("b3:" + nameToRef(p.Name()))
		info, gone := p.Info()
		if err != nil || gone != nil {
			continue
		}
		s.mu.Lock()
		_, busy := s.arrival[ref]
		s.mu.Unlock()
		visit(candidate{filepath.Join(s.layout.parts(), p.Name()), ref, uint64(info.Size()), info.ModTime(), true, busy})
	}
	return nil
}

// eachObject visits the files in the fan-out folders, beginning with that of a number. odd is why a file is no object.
func (s *Store) eachObject(ctx context.Context, first int, visit func(path string, c candidate, odd error) error) error {
	for i := range 256 {
		folder := fmt.Sprintf("%02x", (first+i)%256)
		dir := filepath.Join(s.layout.objects(), folder)
		list, err := s.files.list(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, entry := range list {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			info, err := entry.Info()
			if errors.Is(err, os.ErrNotExist) {
				continue // given up meanwhile
			}
			if err != nil {
				return err
			}
			c := candidate{path: filepath.Join(dir, entry.Name()), bytes: uint64(info.Size()), used: info.ModTime()}
			d, named := digestOf(folder, entry.Name())
			c.ref = digest.Ref{Digest: d, Bytes: uint64(info.Size())}
			var odd error
			if !named || !info.Mode().IsRegular() {
				odd = fmt.Errorf("%s is no file that this store has made", c.path)
			}
			if err := visit(c.path, c, odd); err != nil {
				return err
			}
		}
	}
	return nil
}

// count finds out what a bounded store holds.
func (s *Store) count() error {
	if s.options.MaxBytes == 0 {
		return nil
	}
	return s.each(context.Background(), func(c candidate) { s.room.stored += c.bytes })
}

// Pin keeps objects from being evicted, whether they are there yet or not, until release is called; release may be
// called again. Objects pinned twice are kept until both are released. Pins end with the process: pin first, then see what
// is missing.
func (s *Store) Pin(refs ...digest.Ref) (release func()) {
	refs = slices.Clone(refs)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, ref := range refs {
		s.pins[ref]++
	}
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, ref := range refs {
			if s.pins[ref]--; s.pins[ref] == 0 {
				delete(s.pins, ref)
			}
		}
	})
}

// Pinned is how many different objects are pinned, there or not.
func (s *Store) Pinned() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.pins)
}

// Usage is what a store holds.
type Usage struct {
	Objects     uint64
	Bytes       forge.Bytes // of objects
	Parts       forge.Bytes // of objects that are still arriving
	Quarantined uint64      // files
	Pinned      uint64      // different objects pinned, there or not
	Free        forge.Bytes // on the file system
	MaxBytes    forge.Bytes // 0: no bound
	MinFree     forge.Bytes
}

// Usage counts. It reads every folder's names and sizes.
func (s *Store) Usage(ctx context.Context) (Usage, error) {
	u := Usage{MaxBytes: s.options.MaxBytes, MinFree: s.options.MinFree}
	err := s.each(ctx, func(c candidate) {
		if c.part {
			u.Parts += forge.Bytes(c.bytes)
			return
		}
		u.Objects++
		u.Bytes += forge.Bytes(c.bytes)
	})
	if err != nil {
		return Usage{}, err
	}
	bad, err := s.files.list(s.layout.quarantine())
	if err != nil {
		return Usage{}, err
	}
	u.Quarantined = uint64(len(bad))
	free, err := s.files.free(s.layout.dir)
	if err != nil {
		return Usage{}, err
	}
	u.Free = forge.Bytes(free)
	s.mu.Lock()
	defer s.mu.Unlock()
	u.Pinned = uint64(len(s.pins))
	return u, nil
}

// DropParts gives up what has come of objects to which nobody has added anything since an instant, and says how much that
// was. A part in use stays. It may be called beside anything else.
func (s *Store) DropParts(before time.Time) (count int, bytes forge.Bytes, err error) {
	var old []candidate
	err = s.eachPart(func(c candidate) {
		if !c.busy && c.used.Before(before) {
			old = append(old, c)
		}
	})
	for _, c := range old {
		gone, failed := s.remove(c)
		if gone {
			count++
			bytes += forge.Bytes(c.bytes)
		}
		err = errors.Join(err, failed)
	}
	return count, bytes, err
}
