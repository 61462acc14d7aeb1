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
	"errors"
	"io"
	"log/slog"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
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

// Store is the objects in a folder. All methods may be called by many at once.
type Store struct{}

// Open opens the store in dir, and makes it if it is not there. What a process that died has left half written is
// removed. The error is of the kind disk.ErrLocked (internal/disk) where another process writes to it.
func Open(dir string, o Options) (*Store, error) { return nil, errors.ErrUnsupported }

// Close gives the folder back. Calls that are under way must have returned; readers may go on.
func (s *Store) Close() error { return nil }

// Open implements cas.Source. The reader is a cas.Filer, and an io.WriterTo.
func (s *Store) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	return nil, errors.ErrUnsupported
}

// Missing implements cas.Sink: by name and size, without reading what is there.
func (s *Store) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	return nil, errors.ErrUnsupported
}

// Put implements cas.Sink.
func (s *Store) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	return errors.ErrUnsupported
}

// Add stores what r gives and returns its name. It is as visible and durable as after Put.
func (s *Store) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	return digest.Ref{}, errors.ErrUnsupported
}

// CopyFrom implements cas.CopierFrom, with shared flushes.
func (s *Store) CopyFrom(ctx context.Context, src cas.Source, refs []digest.Ref) error {
	return errors.ErrUnsupported
}

// Batch starts a group of objects that become visible and durable together, for the price of about one flush.
func (s *Store) Batch() *Batch { return nil }

// Batch is objects on their way into a store. Its methods may be called by many at once, but Commit and Discard only
// after all others have returned. One of these two must be called.
type Batch struct{}

// Add takes an object and returns its name. See Store.Add.
func (b *Batch) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	return digest.Ref{}, errors.ErrUnsupported
}

// Put takes an object of a known name. See Store.Put.
func (b *Batch) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	return errors.ErrUnsupported
}

// Commit makes the objects visible and durable. After an error some may be.
func (b *Batch) Commit(ctx context.Context) error { return errors.ErrUnsupported }

// Discard gives up what was not committed. It may be called after Commit, to no effect.
func (b *Batch) Discard() {}

// Part is an object that arrives in pieces, in order and over any number of connections and processes. One goroutine
// uses it.
type Part struct{}

// Part continues an object where it stopped, or begins it. It waits while another holds it. Of an object that is there
// already it holds everything. The caller closes it.
func (s *Store) Part(ctx context.Context, ref digest.Ref) (*Part, error) {
	return nil, errors.ErrUnsupported
}

// Held is how many bytes from the first on are there: the next byte to write is that at Held.
func (p *Part) Held() uint64 { return 0 }

// Write appends bytes. Bytes beyond the object's size are refused with a *cas.MismatchError.
func (p *Part) Write(b []byte) (int, error) { return 0, errors.ErrUnsupported }

// Commit makes the object of the bytes held, as Put does. Where they are another object, everything is forgotten and the
// error is a *cas.MismatchError. Close is still to be called.
func (p *Part) Commit(ctx context.Context) error { return errors.ErrUnsupported }

// Close keeps what was written, for the next Part of the same object. After Commit it keeps nothing.
func (p *Part) Close() error { return nil }

// Pin keeps objects from being evicted, whether they are there yet or not, until release is called; release may be
// called again. Objects pinned twice are kept until both are released. Pins end with the process.
func (s *Store) Pin(refs ...digest.Ref) (release func()) { return func() {} }

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
func (s *Store) Usage(ctx context.Context) (Usage, error) { return Usage{}, errors.ErrUnsupported }

// Finding is something wrong that Verify came across.
type Finding struct {
	Ref  digest.Ref // zero where the name is none
	Path string     // below the store's folder
	Err  error      // a *cas.CorruptError, or what is odd about the file
}

// Report sums up a verification.
type Report struct {
	Objects  uint64
	Bytes    forge.Bytes
	Findings uint64
}

// Verify looks at every object: its name and kind, and deep also its bytes. Each finding is told to found; what is damaged
// goes to quarantine. found may be nil; its error ends the work.
func (s *Store) Verify(ctx context.Context, deep bool, found func(Finding) error) (Report, error) {
	return Report{}, errors.ErrUnsupported
}
