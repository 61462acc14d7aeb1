package treecache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
)

// CopyOptions say what a copy is for.
type CopyOptions struct {
	ReadOnly bool   // files 0444 or 0555, folders 0555; else 0644, 0755 and 0755
	Owner    *Owner // nil: the agent
}

// Copy copies a tree, as Tree.Path has it, into a folder that is there and empty, for those who cannot mount. File systems
// that share bytes between files do; others copy them in the kernel. After an error something may be left in the folder.
func Copy(ctx context.Context, from, to string, o CopyOptions) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("copy tree: %w", err)
	}
	dst, err := os.OpenRoot(to)
	if err != nil {
		return errors.Join(fmt.Errorf("copy tree: %w", err), src.Close())
	}
	s := shared
	if o.ReadOnly {
		s = frozen
	}
	s.owner = o.Owner
	err = write(ctx, dst, src, s, copyFile, func(ctx context.Context, w *writer) error { return feed(ctx, w, "", src) })
	if err != nil {
		return fmt.Errorf("copy tree %s to %s: %w", from, to, err)
	}
	return nil
}

// feed tells a writer the names in a folder and below.
func feed(ctx context.Context, w *writer, at string, folder *os.Root) error {
	entries, err := list(folder)
	if err != nil {
		return fmt.Errorf("read folder %q: %w", at, err)
	}
	for _, e := range entries {
		n, err := named(folder, e)
		if err != nil {
			return fmt.Errorf("read %q: %w", path.Join(at, e.Name()), err)
		}
		here := path.Join(at, e.Name())
		if err := w.add(ctx, here, n); err != nil {
			return err
		}
		if n.kind == tree.Folder {
			// The writer has opened it, and keeps it open until a name outside of it comes.
			if err := feed(ctx, w, here, w.stack[len(w.stack)-1].from); err != nil {
				return err
			}
		}
	}
	return nil
}

func list(folder *os.Root) (entries []fs.DirEntry, err error) {
	d, err := folder.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.ReadDir(-1)
}

// named is what a name in a tree is.
func named(folder *os.Root, e fs.DirEntry) (n name, err error) {
	n = name{name: e.Name()}
	switch {
	case e.IsDir():
		n.kind = tree.Folder
	case e.Type().IsRegular():
		n.kind = tree.File
	case e.Type() == fs.ModeSymlink:
		n.kind = tree.Link
		n.target, err = folder.Readlink(e.Name())
	default:
		err = fmt.Errorf("is no file, folder or link (%v)", e.Type())
	}
	return n, err
}

// copyFile copies a file that the kernel can copy by itself, and where it cannot, as any other.
func copyFile(_ context.Context, from *os.Root, n name, to *os.File) (executable bool, err error) {
	f, err := from.Open(n.name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	_, err = io.Copy(to, f) // FICLONE or copy_file_range on Linux
	return info.Mode()&0o100 != 0, err
}
