// Package folder writes folders full of files: names come in order from one goroutine, and a few workers fill the files.
// What is written is new, looks the same everywhere (modes, owner, times), and goes nowhere but into the one folder: every
// name is resolved within the folder that it is in, which is kept open as long as something in it is left to do, so that no
// path is too long.
//
//	Write   what a feeder says, for example a tree of the content store
//	Copy    what is in another folder
//
// The package starts workers and has joined them when it returns. It syncs nothing and removes nothing: after an error the
// caller has half a folder to remove.
package folder

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of what is under way while a folder is written.
const (
	maxWorkers = 2  // more gain nothing: the file system's own locks are what they wait for
	maxBatch   = 32 // files of one folder that a worker takes at once
	maxQueue   = 16 // batches that wait
)

// Epoch is the time of every file and folder: the earliest that a zip archive can say.
var Epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Owner is who is to own what is written.
type Owner struct{ UID, GID int }

// Style is how what is written is to look.
type Style struct {
	File, Program, Folder fs.FileMode
	Owner                 *Owner // nil: whoever runs this
}

// Plain is what its owner may change, and Frozen what nobody may who keeps to modes.
var (
	Plain  = Style{File: 0o644, Program: 0o755, Folder: 0o755}
	Frozen = Style{File: 0o444, Program: 0o555, Folder: 0o555}
)

// Entry is one name in a folder: a file, a folder or a link, whichever its fields say.
type Entry struct {
	Name string
	// Fill writes a file's bytes, and says whether it is executable. The file is Fill's until it returns.
	Fill func(ctx context.Context, to *File) (executable bool, err error)
	// Target is that of a link.
	Target string
	// Folder makes it one. What is in it comes next.
	Folder bool
	// Finish, if there is one, is called when everything in a folder is done, or nothing of it will be.
	Finish func() error
}

// Writer takes the names of one folder. One goroutine uses it, within the call of feed.
type Writer struct {
	style Style
	fail  context.CancelCauseFunc // the first error ends the work
	work  chan batch
	stack []*folder // from the root to the folder of the last name
}

// folder is one that is being written. It is finished when nothing in it is left to do.
type folder struct {
	path    string
	to      place
	finish  func() error // nil for none
	in      *folder
	waiting []Entry
	open    atomic.Int64 // the feeder, batches, and folders in it that are not finished
}

// batch is some files of a folder.
type batch struct {
	in      *folder
	entries []Entry
}

// Write writes what feed says into the folder to, which it closes. feed gives each name to Writer.Add, and an error of
// either ends the work. Workers are joined when Write returns.
func Write(ctx context.Context, to *os.Root, s Style, feed func(ctx context.Context, w *Writer) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	top, err := placeOf(to)
	if err != nil {
		return fmt.Errorf("open the folder to write: %w", err)
	}
	w := &Writer{style: s, fail: cancel, work: make(chan batch, maxQueue)}
	w.enter("", top, nil)
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

// Add takes the next name, whose path from the root is at. Folders come before what is in them, and everything in a folder
// comes before what is next to it.
func (w *Writer) Add(ctx context.Context, at string, e Entry) error {
	w.leave(ctx, strings.Count(at, "/")+1)
	in := w.stack[len(w.stack)-1]
	switch {
	case !single(e.Name):
		return fmt.Errorf("%q is no name of a file: %w", at, fs.ErrInvalid)
	case e.Folder:
		return w.mkdir(in, at, e)
	case e.Fill == nil:
		return w.link(in, at, e)
	default:
		in.waiting = append(in.waiting, e)
		if len(in.waiting) == maxBatch {
			w.send(in)
		}
		return ctx.Err()
	}
}

// single reports whether a name can only be that of something in the folder itself.
func single(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00"+string(filepath.Separator)) && filepath.IsLocal(name)
}

func (w *Writer) mkdir(in *folder, at string, e Entry) error {
	to, err := in.to.mkdir(e.Name)
	if err != nil {
		if e.Finish != nil {
			err = errors.Join(err, e.Finish())
		}
		return fmt.Errorf("make folder %q: %w", at, err)
	}
	w.enter(at, to, e.Finish)
	return nil
}

func (w *Writer) link(in *folder, at string, e Entry) error {
	if err := in.to.link(e.Target, e.Name, w.style.Owner); err != nil {
		return fmt.Errorf("make link %q: %w", at, err)
	}
	return nil
}

// enter goes down into a folder.
func (w *Writer) enter(at string, to place, finish func() error) {
	f := &folder{path: at, to: to, finish: finish}
	f.open.Store(1)
	if len(w.stack) > 0 {
		f.in = w.stack[len(w.stack)-1]
		f.in.open.Add(1)
	}
	w.stack = append(w.stack, f)
}

// leave goes up until that many folders are left.
func (w *Writer) leave(ctx context.Context, depth int) {
	for len(w.stack) > depth {
		f := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		w.send(f)
		w.done(ctx, f)
	}
}

// send hands the files that wait in a folder to a worker.
func (w *Writer) send(f *folder) {
	if len(f.waiting) > 0 {
		f.open.Add(1)
		w.work <- batch{f, f.waiting} // workers take everything, also after an error
		f.waiting = nil
	}
}

// do writes files, or passes over them once something has failed.
func (w *Writer) do(ctx context.Context, b batch) {
	for _, e := range b.entries {
		if ctx.Err() != nil {
			break
		}
		if err := w.file(ctx, b.in.to, e); err != nil {
			w.fail(fmt.Errorf("make file %q: %w", path.Join(b.in.path, e.Name), err))
		}
	}
	w.done(ctx, b.in)
}

func (w *Writer) file(ctx context.Context, in place, e Entry) error {
	f, err := in.create(e.Name)
	if err != nil {
		return err
	}
	program, err := e.Fill(ctx, f)
	if err == nil {
		mode := w.style.File
		if program {
			mode = w.style.Program
		}
		err = f.dress(mode, w.style.Owner)
	}
	return errors.Join(err, f.close())
}

// done says that one thing in a folder is done. Whoever does the last one gives the folder its looks, which later names
// would change, and closes it.
func (w *Writer) done(ctx context.Context, f *folder) {
	for ; f != nil && f.open.Add(-1) == 0; f = f.in {
		err := ctx.Err()
		if err == nil {
			err = f.to.dress(w.style.Folder, w.style.Owner)
		}
		err = errors.Join(err, f.to.close())
		if f.finish != nil {
			err = errors.Join(err, f.finish())
		}
		if err != nil {
			w.fail(fmt.Errorf("finish folder %q: %w", f.path, err))
		}
	}
}
