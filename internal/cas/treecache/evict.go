package treecache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// RoomError says that there is no room for a tree: on the disk, or within the cache's bound. It is of the kind
// cas.ErrFull. It may go away.
type RoomError struct {
	Tree forge.TreeRef
	Dir  string
	Need forge.Bytes // about
	Free forge.Bytes // what the tree might take
	Err  error       // of the disk; nil where it was seen before anything was written
}

func (e *RoomError) Error() string {
	text := fmt.Sprintf("no room in %s for a tree of %d files and %v: it needs about %v and may take %v; free space on that disk, or let the cache be larger",
		e.Dir, e.Tree.Files, e.Tree.Bytes, e.Need, e.Free)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *RoomError) Unwrap() []error { return []error{cas.ErrFull, e.Err} }

// roomError gives an error of a full disk its type.
func (c *Cache) roomError(ref forge.TreeRef, err error) error {
	if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, errQuota) {
		return err
	}
	free, bad := freeSpace(c.dir)
	if bad != nil {
		err = errors.Join(err, bad)
	}
	return &RoomError{Tree: ref, Dir: c.dir, Need: footprint(ref), Free: free.bytes, Err: err}
}

// makeRoom gives up trees until one more of a size fits, whose size is in c.used already.
func (c *Cache) makeRoom(ctx context.Context, ref forge.TreeRef, size forge.Bytes) error {
	for {
		short, may, err := c.short(ref, size)
		if err != nil || !short {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		gone, err := c.evictOne(time.Time{})
		if err != nil {
			return err
		}
		if !gone {
			return &RoomError{Tree: ref, Dir: c.dir, Need: size, Free: may}
		}
	}
}

// short reports whether a tree does not fit, and how large it might be.
func (c *Cache) short(ref forge.TreeRef, size forge.Bytes) (short bool, may forge.Bytes, err error) {
	free, err := freeSpace(c.dir)
	if err != nil {
		return false, 0, fmt.Errorf("look at the disk of %s: %w", c.dir, err)
	}
	may = free.bytes - min(free.bytes, c.options.MinFree)
	if c.options.MaxBytes > 0 {
		c.mu.Lock()
		others := c.used - size
		c.mu.Unlock()
		may = min(may, c.options.MaxBytes-min(c.options.MaxBytes, others))
	}
	return size > may || free.names < ref.Files, may, nil
}

// Sweep gives up what was not used for too long, then what is beyond the bounds, and flushes what stays, so that it
// survives a power cut. It may take seconds; it is to be called now and then, and when the disk runs short.
func (c *Cache) Sweep(ctx context.Context) error {
	if c.options.MaxAge > 0 {
		if err := c.evictWhile(ctx, time.Now().Add(-c.options.MaxAge), func() (bool, error) { return true, nil }); err != nil {
			return fmt.Errorf("sweep tree cache: %w", err)
		}
	}
	err := c.evictWhile(ctx, time.Time{}, func() (bool, error) {
		short, _, err := c.short(forge.TreeRef{}, 0)
		c.mu.Lock()
		defer c.mu.Unlock()
		return short || c.options.MaxBytes > 0 && c.used > c.options.MaxBytes, err
	})
	if err == nil {
		err = c.flush()
	}
	if err != nil {
		return fmt.Errorf("sweep tree cache: %w", err)
	}
	return nil
}

// evictWhile gives up trees while more says so and there are some.
func (c *Cache) evictWhile(ctx context.Context, before time.Time, more func() (bool, error)) error {
	for ctx.Err() == nil {
		if another, err := more(); err != nil || !another {
			return err
		}
		if gone, err := c.evictOne(before); err != nil || !gone {
			return err
		}
	}
	return context.Cause(ctx)
}

// evictOne gives up the tree that was used longest ago, if that was before a time (the zero time: whenever), and nobody
// holds it.
func (c *Cache) evictOne(before time.Time) (bool, error) {
	ref, e := c.condemn(before)
	if e == nil {
		return false, nil
	}
	err := c.discard(e.name)
	c.mu.Lock()
	c.forgetLocked(ref, e)
	c.mu.Unlock()
	if err != nil {
		return false, fmt.Errorf("remove tree %v: %w", ref.Root, err)
	}
	c.log.Info("gave up a tree", slog.Any("tree", ref), slog.Time("used", e.last))
	return true, nil
}

// condemn picks a tree that may go, and makes it one that cannot be had.
func (c *Cache) condemn(before time.Time) (forge.TreeRef, *entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ref forge.TreeRef
	var oldest *entry
	for r, e := range c.trees {
		switch {
		case !e.there || e.pins > 0 || !before.IsZero() && !e.last.Before(before):
		case oldest == nil || e.last.Before(oldest.last):
			ref, oldest = r, e
		}
	}
	if oldest != nil {
		oldest.there, oldest.settled = false, make(chan struct{})
	}
	return ref, oldest
}

// discard renames a tree and removes it, so that half a tree has never its name.
func (c *Cache) discard(name string) error {
	gone := c.aside(gonePrefix, name)
	if err := c.root.Rename(name, gone); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return remove(c.root, gone)
}

// remove removes a tree of ours. Every folder in it is its owner's to change.
func remove(in *os.Root, name string) error { return in.RemoveAll(name) }

// flush flushes what was made since the last time, and marks it.
func (c *Cache) flush() error {
	var young []*entry
	c.mu.Lock()
	for _, e := range c.trees {
		if e.there && !e.flushed {
			e.pins++ // stays while it is looked at
			young = append(young, e)
		}
	}
	c.mu.Unlock()
	if len(young) == 0 {
		return nil
	}
	err := syncAll(c.root)
	for _, e := range young {
		if err == nil {
			err = c.mark(e)
		}
		c.mu.Lock()
		e.pins--
		e.flushed = err == nil
		c.mu.Unlock()
	}
	if errors.Is(err, errors.ErrUnsupported) {
		return nil // then trees are made anew after a restart
	}
	return err
}

// mark writes down that a tree is flushed, and leaves its time of use as it was.
func (c *Cache) mark(e *entry) error {
	if err := c.root.WriteFile(filepath.Join(e.name, flushFile), nil, 0o600); err != nil {
		return err
	}
	c.mu.Lock()
	last := e.last
	c.mu.Unlock()
	return c.root.Chtimes(e.name, last, last)
}
