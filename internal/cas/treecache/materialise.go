package treecache

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/folder"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// cloneFrom is the size from which a file is cloned where the file system can: of smaller ones the data is the cheap part.
const cloneFrom = 1 << 20

// bufferSize is what a file is read in at once.
const bufferSize = 128 << 10

// buffers are for files on their way.
var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// materialise writes a tree into a folder, which it closes.
func materialise(ctx context.Context, to *os.Root, ref forge.TreeRef, src cas.Source) error {
	o := &objects{src: src}
	return folder.Write(ctx, to, folder.Plain, func(ctx context.Context, w *folder.Writer) error {
		return cas.Walk(ctx, src, ref, func(at string, e tree.Entry) error { return w.Add(ctx, at, o.entry(e)) })
	})
}

// objects fills files from a store.
type objects struct {
	src     cas.Source
	noClone atomic.Bool // it was tried in vain
}

func (o *objects) entry(e tree.Entry) folder.Entry {
	switch e.Kind {
	case tree.Folder:
		return folder.Entry{Name: e.Name, Folder: true}
	case tree.Link:
		return folder.Entry{Name: e.Name, Target: e.Target}
	default:
		return folder.Entry{Name: e.Name, Fill: func(ctx context.Context, to *folder.File) (bool, error) {
			return e.Executable, o.fill(ctx, e.Ref, to)
		}}
	}
}

// fill writes the bytes of an object, and has then seen all of them and their digest.
func (o *objects) fill(ctx context.Context, ref digest.Ref, to *folder.File) (err error) {
	r, err := o.src.Open(ctx, ref)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if o.cloned(ref, r, to) {
		return pour(io.Discard, r)
	}
	return pour(to, r)
}

// cloned shares the object's bytes with the file, where object and file system are made for that. What was cloned is still
// to be read.
func (o *objects) cloned(ref digest.Ref, r io.Reader, to *folder.File) bool {
	f, ok := r.(cas.Filer)
	if !ok || ref.Bytes < cloneFrom || o.noClone.Load() {
		return false
	}
	if err := clone(to.File(), f.File()); err != nil {
		o.noClone.Store(true)
		return false
	}
	return true
}

// pour copies everything.
func pour(to io.Writer, from io.Reader) error {
	if w, ok := from.(io.WriterTo); ok {
		_, err := w.WriteTo(to)
		return err
	}
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, buffer[:]) // without the shortcuts, which bring buffers of their own
	return err
}
