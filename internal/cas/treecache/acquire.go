package treecache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Tree is a tree that somebody holds: it stays until Release. Its methods may be called by many at once.
type Tree struct {
	cache    *Cache
	ref      forge.TreeRef
	path     string
	released atomic.Bool
}

// Path is the tree's folder, absolute. Nobody writes to what is in it.
func (t *Tree) Path() string { return t.path }

// Ref names the tree.
func (t *Tree) Ref() forge.TreeRef { return t.ref }

// Release lets the tree go. It may be called again, to no effect.
func (t *Tree) Release() {
	if !t.released.Swap(true) {
		t.cache.release(t.ref)
	}
}

// Acquire returns a tree, made from the objects in src unless it is there already; the caller releases it. Of those who
// ask for a tree that is not there, one makes it and the others wait; when it fails they try in turn, each with its own
// source. The error is an *IncompatibleError, found before anything is written; a *RoomError; or what the source or
// cas.Walk said, a *cas.CorruptError among them. After an error nothing of the tree is visible.
func (c *Cache) Acquire(ctx context.Context, ref forge.TreeRef, src cas.Source) (*Tree, error) {
	for {
		e, mine := c.claim(ref)
		if mine {
			if err := c.fill(ctx, e, ref, src); err != nil {
				return nil, fmt.Errorf("make tree %v: %w", ref.Root, err)
			}
			return c.held(e, ref), nil
		}
		select {
		case <-e.settled:
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for tree %v: %w", ref.Root, context.Cause(ctx))
		}
		if c.pin(e) {
			return c.held(e, ref), nil
		}
	}
}

func (c *Cache) held(e *entry, ref forge.TreeRef) *Tree {
	return &Tree{cache: c, ref: ref, path: filepath.Join(c.dir, e.name, treeDir)}
}

// claim returns the entry of a tree, and whether it is the caller who has to make it.
func (c *Cache) claim(ref forge.TreeRef) (*entry, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.trees[ref]; e != nil {
		return e, false
	}
	e := &entry{name: nameOf(ref), size: footprint(ref), settled: make(chan struct{})}
	c.trees[ref] = e
	c.used += e.size
	return e, true
}

// pin holds a settled entry, if it is still there.
func (c *Cache) pin(e *entry) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !e.there {
		return false
	}
	e.pins++
	return true
}

func (c *Cache) release(ref forge.TreeRef) {
	now := time.Now()
	c.mu.Lock()
	e := c.trees[ref]
	e.pins--
	e.last = now
	c.mu.Unlock()
	// The next process learns from this when it was used. Without it, it may go too early.
	if err := c.root.Chtimes(e.name, now, now); err != nil {
		c.log.Warn("the time of use of a tree cannot be kept", slog.Any("error", err))
	}
}

// fill makes a claimed tree and pins it.
func (c *Cache) fill(ctx context.Context, e *entry, ref forge.TreeRef, src cas.Source) error {
	err := c.build(ctx, e, ref, src)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.forgetLocked(ref, e)
		return err
	}
	e.there, e.pins, e.last = true, 1, time.Now()
	close(e.settled)
	return nil
}

// forgetLocked takes an entry out of the books. Who waits for it looks again.
func (c *Cache) forgetLocked(ref forge.TreeRef, e *entry) {
	delete(c.trees, ref)
	c.used -= e.size
	close(e.settled)
}

// build makes a tree aside and renames it into place.
func (c *Cache) build(ctx context.Context, e *entry, ref forge.TreeRef, src cas.Source) error {
	if err := compatible(ctx, src, ref, c.hazards); err != nil {
		return err
	}
	if err := c.makeRoom(ctx, ref, e.size); err != nil {
		return err
	}
	aside := c.aside(newPrefix, e.name)
	if err := c.root.Mkdir(aside, 0o700); err != nil {
		return err
	}
	err := c.write(ctx, filepath.Join(aside, treeDir), ref, src)
	if err == nil {
		err = c.root.Rename(aside, e.name)
	}
	if err != nil {
		return errors.Join(c.roomError(ref, err), remove(c.root, aside))
	}
	return nil
}

func (c *Cache) write(ctx context.Context, at string, ref forge.TreeRef, src cas.Source) error {
	if err := c.root.Mkdir(at, 0o700); err != nil {
		return err
	}
	to, err := c.root.OpenRoot(at)
	if err != nil {
		return err
	}
	return materialise(ctx, to, ref, src)
}
