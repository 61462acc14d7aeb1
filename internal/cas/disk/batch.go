package disk

import (
	"context"
	"errors"
	"io"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

const (
	// batchObjects and batchBytes bound what waits in a batch: then it is flushed by whoever comes.
	batchObjects = 4096
	batchBytes   = 256 << 20
	// copyWorkers bounds the objects that CopyFrom has under way at a time.
	copyWorkers = 4
)

// Batch starts a group of objects that become durable together, for the price of about one flush.
func (s *Store) Batch() *Batch { return &Batch{s: s, names: make(map[digest.Ref]struct{})} }

// Batch is objects on their way into a store. An object may be visible before Commit, but not relied on. Its methods may
// be called by many at once, but Commit and Discard only after all others have returned. One of these two must be called.
type Batch struct {
	s *Store

	mu      sync.Mutex
	names   map[digest.Ref]struct{} // of waiting
	waiting []written
	bytes   uint64
}

// Add takes an object and returns its name. See Store.Add.
func (b *Batch) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	return b.take(ctx, nil, r)
}

// Put takes an object of a known name. See Store.Put.
func (b *Batch) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	if b.has(ref) {
		return nil
	}
	_, err := b.take(ctx, &ref, r)
	return err
}

func (b *Batch) has(ref digest.Ref) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.names[ref]
	return ok
}

func (b *Batch) take(ctx context.Context, want *digest.Ref, r io.Reader) (digest.Ref, error) {
	w, there, err := b.s.take(ctx, want, r)
	if err != nil {
		return digest.Ref{}, err
	}
	if there {
		return w.ref, nil
	}
	if !b.s.options.Durable {
		return w.ref, b.s.settle(w)
	}
	return w.ref, b.wait(w)
}

// wait adds an object to those that wait, and flushes them if there are many.
func (b *Batch) wait(w written) error {
	b.mu.Lock()
	if _, again := b.names[w.ref]; again {
		b.mu.Unlock()
		b.s.drop(w)
		return nil
	}
	b.names[w.ref] = struct{}{}
	b.waiting = append(b.waiting, w)
	b.bytes += w.ref.Bytes
	var due []written
	if len(b.waiting) >= batchObjects || b.bytes >= batchBytes {
		due = b.takeLocked()
	}
	b.mu.Unlock()
	return b.s.settle(due...)
}

func (b *Batch) takeLocked() []written {
	due := b.waiting
	b.waiting, b.bytes = nil, 0
	clear(b.names)
	return due
}

// Commit makes the objects visible and durable. After an error some may be.
func (b *Batch) Commit(context.Context) error {
	b.mu.Lock()
	due := b.takeLocked()
	b.mu.Unlock()
	return b.s.settle(due...)
}

// Discard gives up what was not committed. It may be called after Commit, to no effect.
func (b *Batch) Discard() {
	b.mu.Lock()
	due := b.takeLocked()
	b.mu.Unlock()
	for _, w := range due {
		b.s.drop(w)
	}
}

// CopyFrom implements cas.CopierFrom, with shared flushes.
func (s *Store) CopyFrom(ctx context.Context, src cas.Source, refs []digest.Ref) error {
	if s.options.ReadOnly {
		return ErrReadOnly
	}
	missing, err := s.Missing(ctx, refs)
	if err != nil {
		return err
	}
	b := s.Batch()
	err = cas.Each(ctx, missing, copyWorkers, func(ctx context.Context, ref digest.Ref) error {
		return cas.CopyToHasher(ctx, b.Put, src, ref)
	})
	return errors.Join(err, b.Commit(ctx))
}
