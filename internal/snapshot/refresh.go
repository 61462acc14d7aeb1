package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Bounds of bringing an index up to date.
const (
	maxWorkers = 8
	fileTries  = 5         // at a file that changes while it is read
	readBuffer = 256 << 10 // bytes, for each worker
)

// freshness is what refresh found.
type freshness uint8

const (
	allSame   freshness = 1 // every stamp is as it was
	someNew   freshness = 2 // and what is new was read
	staleList freshness = 3 // the listing does not hold any more
)

// refresher brings the entries of an index up to date.
type refresher struct {
	*taking
	findings findings
	next     atomic.Int64 // the folder that comes next
	bytes    atomic.Uint64
	renewed  atomic.Int64 // entries that were read
	full     atomic.Bool  // there are more bytes than the limit
	stale    atomic.Bool
}

// refresh looks at every stamp, and reads again what has another one or one that cannot be relied on. It ends early where
// the listing does not hold any more.
func (t *taking) refresh(ctx context.Context) (freshness, error) {
	r := &refresher{taking: t}
	if t.index.size() > t.options.MaxFiles || !r.guarded() { // a new listing says which
		return staleList, nil
	}
	group, ctx := errgroup.WithContext(ctx)
	for range min(runtime.GOMAXPROCS(0), maxWorkers) {
		group.Go(func() error { return r.work(ctx) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	if r.stale.Load() {
		t.index.moved = r.findings.changed
		return staleList, nil
	}
	if err := r.findings.err(t.dir); err != nil {
		return 0, err
	}
	if n := r.renewed.Load(); n > 0 {
		t.read += n
		return someNew, nil
	}
	return allSame, nil
}

// guarded reports whether what the listing depends on besides its folders is as it was.
func (r *refresher) guarded() bool {
	for i := range r.index.guards {
		g := &r.index.guards[i]
		s, err := stampAt(g.path)
		if err != nil && !os.IsNotExist(err) || s != g.stamp || r.oldAndRacy(s) {
			r.findings.change(g.path)
			r.index.moved = r.findings.changed
			return false
		}
	}
	return true
}

// oldAndRacy reports whether a stamp is too young to be relied on: it was, when the listing was begun, and that is long enough
// ago for another listing to help.
func (r *refresher) oldAndRacy(s stamp) bool { return r.index.loaded && s.racy(r.index.at) }

func (r *refresher) work(ctx context.Context) error {
	look, err := newLooker(r.root)
	if err != nil {
		return err
	}
	w := &worker{refresher: r, look: look}
	for err == nil && !r.stale.Load() {
		at := int(r.next.Add(1)) - 1
		if at >= len(r.index.folders) {
			break
		}
		if err = context.Cause(ctx); err == nil {
			err = w.folder(ctx, &r.index.folders[at])
		}
	}
	return errors.Join(err, look.close())
}

// worker is one goroutine of a refresher.
type worker struct {
	*refresher
	look   *looker
	buffer []byte // nil until something is read, as is sum
	sum    *digest.Hash
}

// outdated says that the listing does not hold.
func (w *worker) outdated(path string) {
	w.findings.change(path)
	w.refresher.stale.Store(true)
}

func (w *worker) folder(ctx context.Context, f *folder) error {
	begun := w.now().UnixNano()
	s, err := w.look.stamp(f.path)
	if err != nil || s != f.stamp || w.oldAndRacy(s) {
		w.outdated(f.path)
		return nil
	}
	for i := range f.entries {
		e := &f.entries[i]
		w.options.Progress.Looked.Add(1)
		at := e.name
		if f.path != "" {
			at = f.path + "/" + e.name
		}
		s, err := w.look.stamp(at)
		switch {
		case os.IsNotExist(err) || err == nil && s.is(typeFolder):
			w.outdated(at)
			return nil
		case err != nil:
			w.findings.refuse(at, reason(err))
			continue
		}
		if !w.room(at, s) {
			return nil
		}
		if s == e.stamp && !e.racy && e.kind != unknown {
			continue
		}
		w.renewed.Add(1)
		if err := w.examine(ctx, f, e, at, glimpse{begun, s}); err != nil {
			return err
		}
	}
	return nil
}

// room counts a file's bytes, and refuses the source where they are too many.
func (w *worker) room(at string, s stamp) bool {
	if !s.is(typeFile) {
		return true
	}
	most := uint64(w.options.MaxBytes)
	if w.bytes.Add(uint64(s.size)) <= most {
		return true
	}
	w.refresher.next.Store(int64(len(w.index.folders))) // nobody goes on
	if w.full.CompareAndSwap(false, true) {
		w.findings.refuse("", fmt.Sprintf("has more than %v of files, up to %q of %d bytes; have git ignore what is no source, or name a smaller folder",
			w.options.MaxBytes, at, s.size))
	}
	return false
}

// glimpse is what somebody saw at a path, and when they had not yet looked.
type glimpse struct {
	before int64
	stamp  stamp
}

// examine finds out what stands at a path where one had a look, reading a file as often as it changes meanwhile.
func (w *worker) examine(ctx context.Context, f *folder, e *entry, at string, seen glimpse) error {
	for range fileTries {
		got := entry{name: e.name, bit: e.bit, stamp: seen.stamp, racy: seen.stamp.racy(seen.before)}
		same, err := w.read(ctx, &got, at)
		switch {
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		case os.IsNotExist(err):
			w.outdated(at)
			return nil
		case err != nil:
			w.findings.refuse(at, reason(err))
			return nil
		case same:
			f.changed = f.changed || !e.sameContent(&got)
			*e = got
			return nil
		}
		seen.before = w.now().UnixNano()
		if seen.stamp, err = w.look.stamp(at); err != nil { // it went away since
			w.outdated(at)
			return nil
		}
	}
	w.findings.change(at)
	return nil
}

// sameContent reports whether two entries of a name make the same tree.
func (e *entry) sameContent(other *entry) bool {
	return e.kind == other.kind && e.exec == other.exec && e.ref == other.ref && e.text == other.text
}

// read fills in what stands at a path, and reports whether it is what its stamp says.
func (w *worker) read(ctx context.Context, e *entry, at string) (same bool, err error) {
	switch {
	case e.stamp.is(typeFile):
		e.kind = file
		e.exec = e.bit == bitOn || e.bit == fromDisk && e.stamp.mode&ownerExec != 0
		e.ref, same, err = w.hash(ctx, at, e.stamp)
		return same, err
	case e.stamp.is(typeLink):
		target, err := w.root.Readlink(filepath.FromSlash(at))
		if err != nil {
			return false, err
		}
		e.link(at, filepath.ToSlash(target))
	case e.stamp.is(typeFolder):
		return false, os.ErrNotExist
	default:
		e.kind, e.why, e.text = leftOut, SpecialFile, "a socket, FIFO or device"
	}
	after, err := w.look.stamp(at)
	return err == nil && after == e.stamp, err
}

// link decides whether a link can stand in a tree.
func (e *entry) link(at, target string) {
	node := tree.Entry{Name: e.name, Kind: tree.Link, Target: target}
	err := node.CheckLink(at)
	if err == nil {
		_, err = tree.Encode([]tree.Entry{node})
	}
	var lead *tree.LinkError
	if errors.As(err, &lead) {
		e.kind, e.why, e.text = leftOut, OutsideLink, fmt.Sprintf("a link to %q, which %s", target, lead.Reason)
		return
	}
	e.kind, e.text = link, target
}

// hash reads a file, and reports whether it had the stamp before and after.
func (w *worker) hash(ctx context.Context, at string, s stamp) (digest.Ref, bool, error) {
	f, err := openSource(w.look, w.root, at)
	if err != nil {
		return digest.Ref{}, false, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	if before, err := f.stamp(); err != nil || before != s {
		return digest.Ref{}, false, err
	}
	if w.buffer == nil {
		w.buffer, w.sum = make([]byte, readBuffer), digest.NewHash()
	}
	w.sum.Reset()
	for left := s.size; left > 0; {
		if err := context.Cause(ctx); err != nil {
			return digest.Ref{}, false, err
		}
		n, err := f.Read(w.buffer[:min(left, readBuffer)])
		_, _ = w.sum.Write(w.buffer[:n])
		w.options.Progress.Read.Add(uint64(n)) //nolint:gosec // a count
		left -= int64(n)
		if err == io.EOF {
			return digest.Ref{}, false, nil
		}
		if err != nil {
			return digest.Ref{}, false, err
		}
	}
	after, err := f.stamp()
	return w.sum.Ref(), err == nil && after == s, err
}

// forget makes the next refresh read these paths again.
func (x *index) forget(paths []string) {
	for _, at := range paths {
		dir := parent(at)
		i, ok := slices.BinarySearchFunc(x.folders, dir, func(f folder, dir string) int { return cmp.Compare(f.path, dir) })
		if !ok {
			continue
		}
		f := &x.folders[i]
		if j, ok := slices.BinarySearchFunc(f.entries, path.Base(at), func(e entry, name string) int { return cmp.Compare(e.name, name) }); ok {
			f.entries[j].stamp = stamp{}
		}
	}
}
