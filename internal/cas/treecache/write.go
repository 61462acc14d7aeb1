package treecache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Bounds of what is under way while a tree is written.
const (
	maxWorkers = 2  // more gain nothing: the file system's own locks are what they wait for
	maxBatch   = 32 // files of one folder that a worker takes at once
	maxQueue   = 16 // batches that wait
)

// epoch is the time of every file and folder: the earliest that a zip archive can say.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Owner is who is to own a copy.
type Owner struct{ UID, GID int }

// style is how a tree is to look.
type style struct {
	file, program, folder fs.FileMode
	owner                 *Owner // nil: the agent
}

var (
	shared = style{file: 0o644, program: 0o755, folder: 0o755}
	frozen = style{file: 0o444, program: 0o555, folder: 0o555}
)

// name is one entry to be written.
type name struct {
	name       string
	kind       tree.Kind
	executable bool
	target     string
	ref        digest.Ref // of a file, where it comes from a store
}

// filler writes a file's bytes, and says whether it is executable. path is for errors.
type filler func(ctx context.Context, from *os.Root, n name, to *os.File) (executable bool, err error)

// writer writes a tree into a folder. Names come to it in the order of cas.Walk, from one goroutine; workers fill files.
type writer struct {
	style style
	fill  filler
	fail  context.CancelCauseFunc // the first error ends the work
	work  chan batch
	stack []*folder // from the root to the folder of the last name
}

// folder is one that is being written. It is finished when nothing in it is left to do.
type folder struct {
	path    string
	to      *os.Root
	from    *os.Root // what it is a copy of; nil where it comes from a store
	in      *folder
	waiting []name
	open    atomic.Int64 // the walker, batches, and folders in it that are not finished
}

// batch is some files of a folder.
type batch struct {
	in    *folder
	names []name
}

// write makes what feed says in the folder to. It closes both folders and has joined its workers when it returns.
func write(ctx context.Context, to, from *os.Root, s style, fill filler, feed func(ctx context.Context, w *writer) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := &writer{style: s, fill: fill, fail: cancel, work: make(chan batch, maxQueue)}
	w.enter("", to, from)
	var workers sync.WaitGroup
	for range min(maxWorkers, runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for b := range w.work {
				w.do(ctx, b)
			}
		})
	}
	if err := feed(ctx, w); err != nil {
		cancel(err)
	}
	w.leave(ctx, 0)
	close(w.work)
	workers.Wait()
	return context.Cause(ctx)
}

// add takes the next name. The path is its, from the root.
func (w *writer) add(ctx context.Context, at string, n name) error {
	w.leave(ctx, strings.Count(at, "/")+1)
	in := w.stack[len(w.stack)-1]
	switch n.kind {
	case tree.Folder:
		return w.mkdir(in, at, n)
	case tree.Link:
		return w.link(in, at, n)
	default:
		in.waiting = append(in.waiting, n)
		if len(in.waiting) == maxBatch {
			w.send(in)
		}
		return ctx.Err()
	}
}

func (w *writer) mkdir(in *folder, at string, n name) (err error) {
	if err := in.to.Mkdir(n.name, 0o700); err != nil {
		return fmt.Errorf("make folder %q: %w", at, err)
	}
	to, err := in.to.OpenRoot(n.name)
	if err != nil {
		return fmt.Errorf("make folder %q: %w", at, err)
	}
	var from *os.Root
	if in.from != nil {
		if from, err = in.from.OpenRoot(n.name); err != nil {
			return errors.Join(fmt.Errorf("open folder %q: %w", at, err), to.Close())
		}
	}
	w.enter(at, to, from)
	return nil
}

func (w *writer) link(in *folder, at string, n name) error {
	err := in.to.Symlink(n.target, n.name)
	if err == nil && w.style.owner != nil {
		err = in.to.Lchown(n.name, w.style.owner.UID, w.style.owner.GID)
	}
	if err == nil {
		err = linkTime(in.to, n.name)
	}
	if err != nil {
		return fmt.Errorf("make link %q: %w", at, err)
	}
	return nil
}

// enter goes down into a folder.
func (w *writer) enter(at string, to, from *os.Root) {
	f := &folder{path: at, to: to, from: from}
	f.open.Store(1)
	if len(w.stack) > 0 {
		f.in = w.stack[len(w.stack)-1]
		f.in.open.Add(1)
	}
	w.stack = append(w.stack, f)
}

// leave goes up until that many folders are left.
func (w *writer) leave(ctx context.Context, depth int) {
	for len(w.stack) > depth {
		f := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		w.send(f)
		w.finish(ctx, f)
	}
}

// send hands the files that wait in a folder to a worker.
func (w *writer) send(f *folder) {
	if len(f.waiting) > 0 {
		f.open.Add(1)
		w.work <- batch{f, f.waiting} // workers take everything, also after an error
		f.waiting = nil
	}
}

// do writes files, or passes over them once something has failed.
func (w *writer) do(ctx context.Context, b batch) {
	for _, n := range b.names {
		if ctx.Err() != nil {
			break
		}
		if err := w.file(ctx, b.in, n); err != nil {
			w.fail(fmt.Errorf("make file %q: %w", path.Join(b.in.path, n.name), err))
		}
	}
	w.finish(ctx, b.in)
}

func (w *writer) file(ctx context.Context, in *folder, n name) error {
	f, err := in.to.OpenFile(n.name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	program, err := w.fill(ctx, in.from, n, f)
	if err == nil && w.style.owner != nil {
		err = f.Chown(w.style.owner.UID, w.style.owner.GID)
	}
	if err == nil {
		mode := w.style.file
		if program {
			mode = w.style.program
		}
		err = f.Chmod(mode)
	}
	if err == nil {
		err = fileTime(in.to, n.name, f)
	}
	return errors.Join(err, f.Close())
}

// finish says that one thing in a folder is done. Whoever does the last one gives the folder its looks, which later names
// would change, and closes it.
func (w *writer) finish(ctx context.Context, f *folder) {
	for ; f != nil && f.open.Add(-1) == 0; f = f.in {
		err := ctx.Err()
		if err == nil {
			err = w.dress(f.to)
		}
		err = errors.Join(err, f.to.Close())
		if f.from != nil {
			err = errors.Join(err, f.from.Close())
		}
		if err != nil {
			w.fail(fmt.Errorf("finish folder %q: %w", f.path, err))
		}
	}
}

func (w *writer) dress(to *os.Root) error {
	if o := w.style.owner; o != nil {
		if err := to.Lchown(".", o.UID, o.GID); err != nil {
			return err
		}
	}
	if err := to.Chmod(".", w.style.folder); err != nil {
		return err
	}
	return to.Chtimes(".", epoch, epoch)
}
