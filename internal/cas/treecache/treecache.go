// Package treecache holds trees of the content store as folders, each made once and then shared by every job that starts
// from it: as what lies below a job's own layer, as a read-only mount, or as what a copy is made of.
//
//	<dir>/lock              held by the one process that uses the cache
//	<dir>/boot              which start of this machine has made what is not flushed yet
//	<dir>/<name>/tree       a tree; <name> says which, with its totals
//	<dir>/<name>/flushed    there once all of it would survive a power cut
//	<dir>/.new-<name>.<n>   a tree in the making; removed at start
//	<dir>/.gone-<name>.<n>  a tree on its way out; likewise
//
// A tree is made aside and renamed into place, so that half a tree is never visible. Every byte of a file is checked
// against its digest at the moment when it is written here. Equal trees look equal: owner the agent, files 0644 or 0755,
// folders 0755, every time the first moment of 1980, the earliest that a zip archive can say.
//
// What keeps a tree as it is are not its modes, for a job that has it as the lower half of an overlay sees those, and
// must be able to write its copy. It is that nobody but the agent reaches the cache's folder (0700), and that jobs get
// trees only through mounts that cannot be written, or as copies.
//
// The cache keeps within its bounds by giving up what was used longest ago, never what somebody holds. It starts no
// goroutine that outlives a call.
package treecache

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Names in the cache's folder, besides those of trees.
const (
	lockFile   = "lock"
	bootFile   = "boot"
	treeDir    = "tree"
	flushFile  = "flushed"
	newPrefix  = ".new-"
	gonePrefix = ".gone-"
)

// Options say how a cache is kept.
type Options struct {
	MaxBytes forge.Bytes   // of all trees, counted as Usage does; 0: no bound but the disk
	MinFree  forge.Bytes   // left free on the file system; 0: none
	MaxAge   time.Duration // since a tree was used last; 0: any
	Log      *slog.Logger  // nil: silent
}

// Cache is the trees in a folder. All methods may be called by many at once.
type Cache struct {
	dir     string
	root    *os.Root
	lock    *os.File
	options Options
	log     *slog.Logger
	hazards hazards // of this file system
	numbers atomic.Uint64

	mu    sync.Mutex
	trees map[forge.TreeRef]*entry
	used  forge.Bytes // by trees, those in the making included
}

// entry is one tree. The cache's mu guards it.
type entry struct {
	name    string
	size    forge.Bytes
	settled chan struct{} // closed when it is neither in the making nor on its way out
	there   bool          // settled, and a tree that may be had
	pins    int
	last    time.Time // of use
	flushed bool
}

// Usage is what a cache holds.
type Usage struct {
	Trees  int
	Held   int         // of them, by somebody
	Bytes  forge.Bytes // of all, as room on a disk: each file counts at least a block
	Free   forge.Bytes // on the file system
	Bounds Options
}

// Open opens the cache in dir, and makes it if it is not there. What a process that died has left half made is removed,
// and what a power cut may have damaged. The error is of the kind disk.ErrLocked where another process uses it.
func Open(dir string, o Options) (*Cache, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("open tree cache: %w", err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if err := disk.PrivateFolder(dir); err != nil {
		return nil, fmt.Errorf("open tree cache: %w", err)
	}
	c := &Cache{dir: dir, options: o, log: o.Log, trees: make(map[forge.TreeRef]*entry)}
	if err := c.open(); err != nil {
		return nil, errors.Join(fmt.Errorf("open tree cache %s: %w", dir, err), c.Close())
	}
	return c, nil
}

func (c *Cache) open() (err error) {
	if c.lock, err = os.OpenFile(filepath.Join(c.dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	if err := disk.Lock(c.lock); err != nil {
		return err
	}
	if c.root, err = os.OpenRoot(c.dir); err != nil {
		return err
	}
	if c.hazards, err = probe(c.root); err != nil {
		return err
	}
	return c.load()
}

// Close gives the folder back. Calls that are under way must have returned, and trees must not be used any more.
func (c *Cache) Close() error {
	var errs []error
	if c.root != nil {
		errs = append(errs, c.root.Close())
	}
	if c.lock != nil {
		errs = append(errs, c.lock.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close tree cache: %w", err)
	}
	return nil
}

// load takes over what an earlier process has made, and removes what it has not finished.
func (c *Cache) load() error {
	boot := bootID()
	before, err := c.root.ReadFile(bootFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	sameBoot := boot != "" && string(before) == boot
	names, err := fs.ReadDir(c.root.FS(), ".")
	if err != nil {
		return err
	}
	for _, n := range names {
		if err := c.take(n.Name(), sameBoot); err != nil {
			return err
		}
	}
	return disk.WriteFile(filepath.Join(c.dir, bootFile), []byte(boot), 0o600)
}

// take judges one name in the cache's folder.
func (c *Cache) take(name string, sameBoot bool) error {
	if strings.HasPrefix(name, newPrefix) || strings.HasPrefix(name, gonePrefix) || strings.HasPrefix(name, probePrefix) {
		return remove(c.root, name)
	}
	ref, ok := parseName(name)
	if !ok {
		return nil // not ours
	}
	info, err := c.root.Stat(name)
	if err != nil {
		return err
	}
	_, err = c.root.Lstat(filepath.Join(name, flushFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	flushed := err == nil
	if !flushed && !sameBoot {
		c.log.Info("a tree that was not flushed before this machine went down is made anew", slog.Any("tree", ref))
		return c.discard(name)
	}
	settled := make(chan struct{})
	close(settled)
	c.trees[ref] = &entry{name: name, size: footprint(ref), settled: settled, there: true, last: info.ModTime(), flushed: flushed}
	c.used += footprint(ref)
	return nil
}

// Usage counts.
func (c *Cache) Usage() (Usage, error) {
	free, err := freeSpace(c.dir)
	if err != nil {
		return Usage{}, fmt.Errorf("look at the disk of %s: %w", c.dir, err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return Usage{Trees: len(c.trees), Held: c.heldLocked(), Bytes: c.used, Free: free.bytes, Bounds: c.options}, nil
}

// Held is how many trees somebody holds.
func (c *Cache) Held() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heldLocked()
}

func (c *Cache) heldLocked() (held int) {
	for _, e := range c.trees {
		if e.pins > 0 {
			held++
		}
	}
	return held
}

// aside is a name that nothing has yet.
func (c *Cache) aside(prefix, name string) string {
	return fmt.Sprintf("%s%s.%d", prefix, name, c.numbers.Add(1))
}

// nameOf is the folder of a tree. Trees with other totals are others: one of them is a lie.
func nameOf(t forge.TreeRef) string {
	return fmt.Sprintf("%x-%d-%d-%d-%d", t.Root.Digest[:], t.Root.Bytes, t.Files, uint64(t.Bytes), t.Depth)
}

func parseName(name string) (forge.TreeRef, bool) {
	var t forge.TreeRef
	var hash []byte
	n, err := fmt.Sscanf(name, "%64x-%d-%d-%d-%d", &hash, &t.Root.Bytes, &t.Files, (*uint64)(&t.Bytes), &t.Depth)
	if err != nil || n != 5 || len(hash) != len(t.Root.Digest) {
		return forge.TreeRef{}, false
	}
	copy(t.Root.Digest[:], hash)
	return t, nameOf(t) == name
}

// block is what even the smallest file or folder is taken to need of a disk.
const block = 4 * forge.KiB

// footprint is about how much of a disk a tree takes: half a block is lost at the end of each file.
func footprint(t forge.TreeRef) forge.Bytes {
	return min(t.Bytes, forge.MaxTreeBytes) + forge.Bytes(min(t.Files, forge.MaxTreeFiles))*block/2 + block
}
