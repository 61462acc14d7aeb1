package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// deliver gives the sink what it lacks of the tree: files first, then folders from the bottom up, so that no tree stands there
// before what it names. The error is a *ChangedError where a file was not what it had been any more.
func (t *taking) deliver(ctx context.Context, root forge.TreeRef) error {
	if holder, ok := t.sink.(TreeHolder); ok {
		if has, err := holder.HasTree(ctx, root); has || err != nil {
			return err
		}
	}
	files, folders := t.index.refs()
	look, err := newLooker(t.root)
	if err != nil {
		return err
	}
	return errors.Join(t.send(ctx, &worktree{root: t.root, look: look, index: t.index, progress: t.options.Progress}, files, folders), look.close())
}

// send gives the sink what it lacks of these objects, in their order.
func (t *taking) send(ctx context.Context, src *worktree, lists ...[]digest.Ref) error {
	_, asks := t.sink.(cas.CopierFrom) // itself, so it need not be asked before
	for _, refs := range lists {
		if !asks {
			missing, err := t.sink.Missing(ctx, refs)
			if err != nil {
				return err
			}
			refs = missing
		}
		if len(refs) == 0 {
			continue
		}
		src.know(refs)
		if err := cas.Copy(ctx, t.sink, src, refs); err != nil {
			return t.moved(src, err)
		}
	}
	return nil
}

// moved makes a *ChangedError of an error that comes from a file that changed.
func (t *taking) moved(src *worktree, err error) error {
	changed := src.findings.err(t.dir)
	if changed == nil {
		return err
	}
	var c *ChangedError
	if errors.As(changed, &c) {
		t.index.forget(c.Paths)
	}
	return changed
}

// refs are the objects of the tree, folders below before those above.
func (x *index) refs() (files, folders []digest.Ref) {
	files = make([]digest.Ref, 0, x.size())
	for i := len(x.folders) - 1; i >= 0; i-- {
		f := &x.folders[i]
		for j := range f.entries {
			if f.entries[j].kind == file {
				files = append(files, f.entries[j].ref)
			}
		}
		if !f.ref.IsZero() {
			folders = append(folders, f.ref)
		}
	}
	return files, folders
}

// worktree gives objects out of the folder on disk. It notes which files were not the object that they had been.
type worktree struct {
	root     *os.Root
	look     *looker
	index    *index
	progress *Progress

	files    map[digest.Ref]string // to a path
	folders  map[digest.Ref]int    // to its place in the index
	below    [][]int               // the folders in each
	findings findings
}

// know looks up where these objects are.
func (w *worktree) know(refs []digest.Ref) {
	wanted := make(map[digest.Ref]bool, len(refs))
	for _, ref := range refs {
		wanted[ref] = true
	}
	w.files, w.folders, w.below = map[digest.Ref]string{}, map[digest.Ref]int{}, w.index.below()
	for i := range w.index.folders {
		f := &w.index.folders[i]
		if wanted[f.ref] {
			w.folders[f.ref] = i
		}
		for j := range f.entries {
			if e := &f.entries[j]; e.kind == file && wanted[e.ref] {
				w.files[e.ref] = join(f.path, e.name)
			}
		}
	}
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// Open gives the bytes of an object of the source, and checks them.
func (w *worktree) Open(_ context.Context, ref digest.Ref) (io.ReadCloser, error) {
	if i, ok := w.folders[ref]; ok {
		encoded, err := tree.Encode(w.index.nodes(i, w.below[i]))
		return cas.Check(ref, io.NopCloser(bytes.NewReader(encoded)), "the index"), err
	}
	at, ok := w.files[ref]
	if !ok {
		return nil, cas.ErrNotFound
	}
	f, err := openSource(w.look, w.root, at)
	if err != nil {
		return nil, w.failed(at, err)
	}
	if s, err := f.stamp(); err != nil || !s.is(typeFile) {
		return nil, errors.Join(w.failed(at, errors.Join(err, os.ErrNotExist)), f.Close())
	}
	w.progress.Sent.Add(1)
	return &fileReader{file: f, left: ref.Bytes, ref: ref, from: w, path: at}, nil
}

// failed notes that a file cannot be read any more.
func (w *worktree) failed(at string, err error) error {
	if os.IsNotExist(err) || errors.Is(err, os.ErrNotExist) {
		w.findings.change(at)
	} else {
		w.findings.refuse(at, reason(err))
	}
	return err
}

// fileReader reads one file of the source as the object that it was: as many bytes as that has, and checks them. It is a
// cas.Plain.
type fileReader struct {
	file    sourceFile
	left    uint64
	ref     digest.Ref
	from    *worktree
	path    string
	checked io.ReadCloser // once it is read as what it is
}

func (r *fileReader) Read(p []byte) (int, error) {
	if r.checked == nil {
		r.checked = cas.Check(r.ref, io.NopCloser(r.Plain()), r.from.root.Name())
	}
	n, err := r.checked.Read(p)
	var corrupt *cas.CorruptError
	if errors.As(err, &corrupt) {
		err = r.Wrong()
	}
	return n, err
}

func (r *fileReader) Close() error { return r.file.Close() }

// Plain implements cas.Plain.
func (r *fileReader) Plain() io.Reader { return (*plainFile)(r) }

// Wrong implements cas.Plain.
func (r *fileReader) Wrong() error {
	r.from.findings.change(r.path)
	return &cas.CorruptError{Ref: r.ref, Where: r.from.root.Name()}
}

// plainFile is a file's bytes.
type plainFile fileReader

// Read ends with the object, so that nobody has to ask whether more comes. What has been appended since is not part of it.
func (r *plainFile) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	n, err := r.file.Read(p[:min(uint64(len(p)), r.left)])
	r.from.progress.Bytes.Add(uint64(n)) //nolint:gosec // a count
	if r.left -= uint64(n); err == nil && r.left == 0 {
		err = io.EOF
	}
	if err != nil && err != io.EOF {
		r.from.findings.refuse(r.path, reason(err))
	}
	return n, err
}
