package folder

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// Copy copies what is in one folder into another, which is there and has none of the names. File systems that share bytes
// between files do; others copy them in the kernel. Nobody may change from meanwhile. It holds a file open for each level of
// folders. After an error something may be left in to.
func Copy(ctx context.Context, from, to string, s Style) error {
	src, err := os.OpenRoot(from)
	if err != nil {
		return fmt.Errorf("copy folder: %w", err)
	}
	defer func() { _ = src.Close() }() // nothing was written by it
	dst, err := os.OpenRoot(to)
	if err != nil {
		return fmt.Errorf("copy folder: %w", err)
	}
	if err := Write(ctx, dst, s, func(ctx context.Context, w *Writer) error { return feed(ctx, w, "", src) }); err != nil {
		return fmt.Errorf("copy folder %s to %s: %w", from, to, err)
	}
	return nil
}

// feed tells a writer the names in a folder and below.
func feed(ctx context.Context, w *Writer, at string, in *os.Root) error {
	entries, err := list(in)
	if err != nil {
		return fmt.Errorf("read folder %q: %w", at, err)
	}
	for _, e := range entries {
		if err := feedOne(ctx, w, path.Join(at, e.Name()), in, e); err != nil {
			return err
		}
	}
	return nil
}

func feedOne(ctx context.Context, w *Writer, at string, in *os.Root, e fs.DirEntry) error {
	switch {
	case e.Type().IsRegular():
		return w.Add(ctx, at, Entry{Name: e.Name(), Fill: func(_ context.Context, to *File) (bool, error) {
			return copyFile(in, e.Name(), to.File())
		}})
	case e.Type() == fs.ModeSymlink:
		target, err := in.Readlink(e.Name())
		if err != nil {
			return fmt.Errorf("read link %q: %w", at, err)
		}
		return w.Add(ctx, at, Entry{Name: e.Name(), Target: target})
	case e.IsDir():
		below, err := in.OpenRoot(e.Name())
		if err != nil {
			return fmt.Errorf("open folder %q: %w", at, err)
		}
		if err := w.Add(ctx, at, Entry{Name: e.Name(), Folder: true, Finish: below.Close}); err != nil {
			return err
		}
		return feed(ctx, w, at, below) // which stays open until a name comes that is not in it
	default:
		return fmt.Errorf("%q is no file, folder or link (%v)", at, e.Type())
	}
}

func list(in *os.Root) (entries []fs.DirEntry, err error) {
	d, err := in.Open(".")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	return d.ReadDir(-1)
}

// copyFile copies a file in the kernel, and where that cannot be, as any other.
func copyFile(from *os.Root, name string, to *os.File) (executable bool, err error) {
	f, err := from.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	_, err = io.Copy(to, f) // copy_file_range on Linux, which shares bytes where the file system can
	return info.Mode()&0o100 != 0, err
}
