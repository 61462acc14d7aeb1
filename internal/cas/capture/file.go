package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// errChanged is the end of a file or folder that is not what it was when it was looked at.
var errChanged = errors.New("has changed while it was captured")

// reason says what an error has to do with the job that left an entry: nothing, if it is empty.
func reason(err error) string {
	switch {
	case errors.Is(err, errChanged):
		return errChanged.Error()
	case errors.Is(err, fs.ErrPermission):
		return "may not be read by the agent; let the job give its owner the right to read it"
	default:
		return ""
	}
}

// openFolder opens a folder that was looked at before, and nothing else. The dot behind it says that it must be a folder: a
// pipe that has taken its place would keep us waiting.
func openFolder(in *os.Root, info fs.FileInfo) (*os.Root, error) {
	folder, err := in.OpenRoot(info.Name() + "/.")
	if err != nil {
		return nil, changed(in, info, err)
	}
	now, err := folder.Stat(".")
	if err == nil && !os.SameFile(info, now) {
		err = errChanged
	}
	if err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// openFile opens a file that was looked at before, and nothing else. If that is a pipe meanwhile, it does not wait; if it is
// a link, what it leads to is another file.
func openFile(in *os.Root, info fs.FileInfo) (*os.File, error) {
	f, err := in.OpenFile(info.Name(), os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, changed(in, info, err)
	}
	now, err := f.Stat()
	if err == nil && (!os.SameFile(info, now) || !now.Mode().IsRegular() || now.Size() != info.Size()) {
		err = errChanged
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// changed finds out whether what cannot be opened is still what was looked at.
func changed(in *os.Root, info fs.FileInfo, err error) error {
	now, statErr := in.Lstat(info.Name())
	if errors.Is(statErr, fs.ErrNotExist) || statErr == nil && (!os.SameFile(info, now) || info.Mode().Type() != now.Mode().Type()) {
		return errChanged // the second question for systems that give a number again at once
	}
	return err
}

// file takes a file. What it would make of the output's size is known before a byte of it is read.
func (w *walk) file(n *node, in *os.Root, info fs.FileInfo) error {
	if w.bytes += forge.Bytes(info.Size()); w.bytes > w.out.MaxBytes {
		path := n.path(info.Name())
		return w.tooLarge(path, "it has more than %v: with %q, which has %v, it has at least %v",
			w.out.MaxBytes, shown(path), forge.Bytes(info.Size()), w.bytes)
	}
	if w.refusing() {
		return nil
	}
	select {
	case w.readers <- struct{}{}:
	case <-w.ctx.Done():
		return context.Cause(w.ctx)
	}
	f, err := openFile(in, info)
	if err != nil {
		<-w.readers
		if why := reason(err); why != "" {
			w.refuse(n, info.Name(), why)
			return nil
		}
		return fmt.Errorf("open %q: %w", shown(n.path(info.Name())), err)
	}
	w.mu.Lock()
	n.pending++
	w.mu.Unlock()
	w.reading.Go(func() {
		defer func() { <-w.readers }()
		if err := w.read(n, f, info); err != nil {
			w.fail(err)
		}
	})
	return nil
}

// read gives a file to the sink.
func (w *walk) read(n *node, f *os.File, info fs.FileInfo) error {
	ref, err := w.sink.Add(w.ctx, &exactly{ctx: w.ctx, r: f, left: uint64(info.Size())})
	now, statErr := f.Stat()
	err = errors.Join(err, statErr, f.Close())
	if err == nil && (now.Size() != info.Size() || !now.ModTime().Equal(info.ModTime())) {
		err = errChanged
	}
	if why := reason(err); why != "" {
		w.refuse(n, info.Name(), why)
		return nil
	} else if err != nil {
		return fmt.Errorf("keep %q: %w", shown(n.path(info.Name())), err)
	}
	executable := info.Mode()&0o111 != 0
	if err := w.add(n, tree.Entry{Name: info.Name(), Kind: tree.File, Ref: ref, Executable: executable}); err != nil {
		return err
	}
	return w.done(n)
}

// exactly reads a file of which the size is known. One that is shorter or longer has changed.
type exactly struct {
	ctx  context.Context
	r    io.Reader
	left uint64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.ctx.Err() != nil {
		return 0, context.Cause(e.ctx)
	}
	var over [1]byte
	if e.left == 0 {
		p = over[:]
	} else if uint64(len(p)) > e.left {
		p = p[:e.left]
	}
	n, err := e.r.Read(p)
	switch {
	case e.left == 0 && n > 0, e.left > uint64(n) && errors.Is(err, io.EOF):
		return 0, errChanged
	case e.left == 0:
		return 0, err
	}
	e.left -= uint64(n)
	return n, err
}

// add puts an entry into its folder.
func (w *walk) add(n *node, e tree.Entry) error {
	w.mu.Lock()
	n.entries = append(n.entries, e)
	many := len(n.entries) > tree.MaxEntries
	w.mu.Unlock()
	if many {
		return w.tooLarge(n.path(""), "there are more than %d files in the folder %q", tree.MaxEntries, shown(n.path("")))
	}
	return nil
}

// done says that something in a folder is done. What then is whole is made a tree, and put into the folder above.
func (w *walk) done(n *node) error {
	for ; n != nil; n = n.up {
		w.mu.Lock()
		n.pending--
		waits := n.pending > 0 || len(w.refused.first) > 0 || w.err != nil
		w.mu.Unlock()
		if waits {
			return nil
		}
		if len(n.entries) == 0 && (!n.kept || n.up == nil) {
			continue
		}
		e, err := w.tree(n)
		if err != nil {
			return err
		}
		if n.up == nil {
			w.root = e
			return nil
		}
		if err := w.add(n.up, e); err != nil {
			return err
		}
	}
	return nil
}

// tree makes the tree of a folder in which nothing is on its way.
func (w *walk) tree(n *node) (tree.Entry, error) {
	path := n.path("")
	if why := badName(n.name); why != "" {
		w.refuse(n.up, n.name, why)
		return tree.Entry{}, nil
	}
	object, err := tree.Encode(n.entries)
	if err != nil {
		return tree.Entry{}, &Error{Class: forge.OutputRefused, Output: w.out.Name, Paths: []string{path}, Err: fmt.Errorf("the folder %q: %w", shown(path), err)}
	}
	ref := digest.RefOf(object)
	if err := w.sink.Put(w.ctx, ref, bytes.NewReader(object)); err != nil {
		return tree.Entry{}, fmt.Errorf("keep the folder %q: %w", shown(path), err)
	}
	return tree.Entry{Name: n.name, Kind: tree.Folder, Ref: ref, Totals: tree.TotalsOf(n.entries)}, nil
}
