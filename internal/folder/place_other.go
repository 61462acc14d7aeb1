//go:build !linux

package folder

import (
	"errors"
	"io/fs"
	"os"
)

// place is an open folder.
type place struct{ root *os.Root }

// placeOf takes over a folder.
func placeOf(root *os.Root) (place, error) { return place{root}, nil }

func (p place) mkdir(name string) (place, error) {
	if err := p.root.Mkdir(name, 0o700); err != nil {
		return place{}, err
	}
	root, err := p.root.OpenRoot(name)
	return place{root}, err
}

// create makes a file, which must not be there.
func (p place) create(name string) (*File, error) {
	f, err := p.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &File{in: p.root, name: name, file: f}, nil
}

// link makes a link and gives it its owner. It leaves it its time: nothing portable gives it another.
func (p place) link(target, name string, owner *Owner) error {
	err := p.root.Symlink(target, name)
	if err == nil && owner != nil {
		err = p.root.Lchown(name, owner.UID, owner.GID)
	}
	return err
}

func (p place) dress(mode fs.FileMode, owner *Owner) error {
	if owner != nil {
		if err := p.root.Lchown(".", owner.UID, owner.GID); err != nil {
			return err
		}
	}
	return errors.Join(p.root.Chmod(".", mode), p.root.Chtimes(".", Epoch, Epoch))
}

func (p place) close() error { return p.root.Close() }

// File is a file that is being written, by one goroutine.
type File struct {
	in   *os.Root
	name string
	file *os.File
}

// Write writes all of p.
func (f *File) Write(p []byte) (int, error) { return f.file.Write(p) }

// File is the same file for package os. It is not to be closed.
func (f *File) File() *os.File { return f.file }

// dress gives a file its looks, its time by its name: on Windows the handle that wrote it would set the time once more at its end.
func (f *File) dress(mode fs.FileMode, owner *Owner) error {
	if owner != nil {
		if err := f.file.Chown(owner.UID, owner.GID); err != nil {
			return err
		}
	}
	return errors.Join(f.file.Chmod(mode), f.in.Chtimes(f.name, Epoch, Epoch))
}

func (f *File) close() error { return f.file.Close() }
