// Package disk is the content store in a folder of this machine: each object a plain file under its digest, as the agent's
// cache and as what the daemon keeps.
//
//	<dir>/lock             held by the one process that writes
//	<dir>/b3/ab/<hex>      an object, 0444; <hex> is all 64 digits of its digest, ab the first two
//	<dir>/b3/ab/.<…>.tmp   an object being written; removed at start
//	<dir>/tmp/             objects being written whose digest is not known yet; emptied at start
//	<dir>/parts/           objects that arrive in pieces, each with a file of marks; kept over restarts
//	<dir>/quarantine/      what was found damaged, the last few
//
// What is there is what the folder says: there is no index that could promise more after a crash. An object is written
// beside its place, hashed on the way, compared, and renamed into place, so that a partial one is never visible. Each read
// hashes again; bytes that are wrong, or cannot be read, end in a *cas.CorruptError, the file goes to quarantine, and the
// object is absent from then on.
//
// A durable store flushes objects before their names, and the names before it says so, many at a time: callers that come
// together share a flush, and a Batch makes one out of many objects. A store that is not durable leaves flushing to the
// system: a power cut may take or damage what is young, which the next reader finds. That suits a cache, whose objects
// exist elsewhere; the agent's is one.
//
// Opened to evict, a store stays within its bounds by giving up what was used longest ago, never what is pinned. Otherwise
// nothing is deleted, and what does not fit is cas.ErrFull.
//
// The store has no goroutine of its own; work that it shares among several is joined before the call returns.
package disk

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
	osdisk "github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Options say how a store is kept.
type Options struct {
	MaxBytes forge.Bytes  // of objects and parts; 0: no bound but the disk
	MinFree  forge.Bytes  // left free on the file system; 0: none
	Evict    bool         // make room by giving up what was used longest ago; else what does not fit is refused
	Durable  bool         // what was stored survives a power cut
	ReadOnly bool         // read what another process may be writing: nothing is changed, also not what is damaged
	Log      *slog.Logger // nil: silent
}

// ErrReadOnly says that a store was opened to be read.
var ErrReadOnly = errors.New("the object store was opened to be read only")

// Store is the objects in a folder. All methods may be called by many at once.
type Store struct {
	options Options
	layout  layout
	files   files
	log     *slog.Logger
	now     func() time.Time // for when an object was used, which a step of the clock may confuse without harm
	lock    *os.File
	temp    atomic.Uint64    // numbers temporary files
	fan     [256]atomic.Bool // which fan-out folders are known to be there
	flushes flushes
	evict   chan struct{} // held by the one who makes room

	markEvery uint64 // bytes; tests make it small

	// mu orders giving up an object with everything that needs it to stay. Both are a name looked up and a name removed,
	// so removing is done while it is held.
	mu      sync.Mutex
	room    room
	pins    map[digest.Ref]int
	arrival map[digest.Ref]chan struct{} // parts in use; closed when given back
}

// Open opens the store in dir, and makes it if it is not there. What a process that died has left half written is
// removed. The error is of the kind disk.ErrLocked (internal/disk) where another process writes to it.
func Open(dir string, o Options) (*Store, error) { return open(dir, o, &system{}) }

func open(dir string, o Options, f files) (*Store, error) {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &Store{
		options: o, layout: layout{dir}, files: f, log: o.Log, now: time.Now, evict: make(chan struct{}, 1), markEvery: markEvery,
		pins: make(map[digest.Ref]int), arrival: make(map[digest.Ref]chan struct{}), flushes: newFlushes(),
	}
	if o.ReadOnly {
		if _, err := f.stat(s.layout.objects()); err != nil {
			return nil, err
		}
		return s, f.enter(dir)
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(fmt.Errorf("open object store %s: %w", dir, err), s.Close())
	}
	return s, nil
}

// prepare takes the folder and clears away what nobody is at work on any more.
func (s *Store) prepare() error {
	if err := osdisk.PrivateFolder(s.layout.dir); err != nil {
		return err
	}
	if err := s.files.enter(s.layout.dir); err != nil {
		return err
	}
	lock, err := os.OpenFile(s.layout.lock(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	s.lock = lock
	if err := osdisk.Lock(lock); err != nil {
		return err
	}
	for _, dir := range []string{s.layout.objects(), s.layout.temps(), s.layout.parts(), s.layout.quarantine()} {
		if err := s.files.mkdir(dir); err != nil {
			return err
		}
	}
	if s.options.Durable {
		if err := s.files.syncFolder(s.layout.dir); err != nil {
			return err
		}
	}
	if err := s.clear(); err != nil {
		return err
	}
	return s.count()
}

// clear removes temporary files, all of which are a dead process's, and marks whose part has become an object.
func (s *Store) clear() error {
	parts, err := s.files.list(s.layout.parts())
	if err != nil {
		return err
	}
	for _, p := range parts {
		path := filepath.Join(s.layout.parts(), p.Name())
		data, marks := strings.CutSuffix(path, marksEnding)
		if _, err := s.files.stat(data); marks && errors.Is(err, os.ErrNotExist) {
			if err := s.files.remove(path); err != nil {
				return err
			}
		}
	}
	temps, err := s.files.list(s.layout.temps())
	if err != nil {
		return err
	}
	for _, t := range temps {
		if err := s.files.remove(filepath.Join(s.layout.temps(), t.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Close gives the folder back. Calls that are under way must have returned; readers may go on. It may be called again.
func (s *Store) Close() error {
	err := s.files.leave()
	if s.lock != nil {
		err = errors.Join(err, s.lock.Close())
		s.lock = nil
	}
	return err
}

// folder is where an object stands.
func (s *Store) folder(d digest.Digest) string {
	return s.layout.objects() + string(filepath.Separator) + hex.EncodeToString(d[:1])
}

func (s *Store) path(d digest.Digest) string {
	return s.folder(d) + string(filepath.Separator) + hex.EncodeToString(d[:])
}

// digestOf reads the name of an object's file in a fan-out folder.
func digestOf(folder, name string) (digest.Digest, bool) {
	d, err := digest.Parse("b3:" + name)
	return d, err == nil && strings.HasPrefix(name, folder)
}

// present reports whether an object is there by name and size, and notes that it was of use.
func (s *Store) present(ref digest.Ref) (bool, error) {
	info, err := s.files.stat(s.path(ref.Digest))
	switch {
	case errors.Is(err, os.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.regular || info.bytes != ref.Bytes:
		return false, nil
	}
	s.used(ref, info.modified)
	return true, nil
}

// usedEvery is how fine the time of last use is kept: finer would be a write for each read.
const usedEvery = time.Hour

// used notes that an object was of use. That this may fail costs nothing but an object given up too early.
func (s *Store) used(ref digest.Ref, last time.Time) {
	if now := s.now(); s.options.Evict && !s.options.ReadOnly && now.Sub(last).Abs() > usedEvery {
		if err := s.files.touch(s.path(ref.Digest), now); err != nil {
			s.log.Debug("cannot note an object's use", "object", ref.String(), "error", err)
		}
	}
}

// lookTogether is how many objects one goroutine looks for: of fewer, one alone does.
const lookTogether = 512

// Missing implements cas.Sink: by name and size, without reading what is there.
func (s *Store) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	refs = cas.Distinct(refs, func(digest.Ref) bool { return true })
	absent := make([]bool, len(refs))
	var looking errgroup.Group
	looking.SetLimit(runtime.GOMAXPROCS(0))
	for from := 0; from < len(refs); from += lookTogether {
		to := min(from+lookTogether, len(refs))
		looking.Go(func() error { return s.look(ctx, refs[from:to], absent[from:to]) })
	}
	if err := looking.Wait(); err != nil {
		return nil, err
	}
	var missing []digest.Ref
	for i, ref := range refs {
		if absent[i] {
			missing = append(missing, ref)
		}
	}
	return missing, nil
}

// look notes which objects are absent.
func (s *Store) look(ctx context.Context, refs []digest.Ref, absent []bool) error {
	for i, ref := range refs {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		there, err := s.have(ref)
		if err != nil {
			return err
		}
		absent[i] = !there
	}
	return nil
}
