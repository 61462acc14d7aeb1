//go:build unix

package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

func openToSync(path string) (*os.File, error) { return os.Open(path) }

func free(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}

// full reports whether an error says that the disk, or this user's share of it, has no room.
func full(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// system is the file system of this machine. Package os does more for the steps that each object takes than is needed here (a
// second look at the target of a rename, a file prepared for polling), which doubles the time of storing small objects; and
// the kernel is spared the way to the store's folder for each of them.
type system struct{ anchor atomic.Pointer[anchor] }

// anchor is an open folder in which most paths are.
type anchor struct {
	prefix string
	fd     int
}

func (s *system) enter(dir string) error {
	var fd int
	err := again(func() (err error) {
		fd, err = unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return &os.PathError{Op: "open", Path: dir, Err: err}
	}
	s.anchor.Store(&anchor{filepath.Clean(dir) + "/", fd})
	return nil
}

func (s *system) leave() error {
	if a := s.anchor.Swap(nil); a != nil {
		return closeFile(a.fd, a.prefix)
	}
	return nil
}

// at spells a path for calls that begin in a folder.
func (s *system) at(path string) (fd int, name string) {
	if a := s.anchor.Load(); a != nil {
		if name, within := strings.CutPrefix(path, a.prefix); within {
			return a.fd, name
		}
	}
	return unix.AT_FDCWD, path
}

func (s *system) stat(path string) (facts, error) {
	var st unix.Stat_t
	fd, name := s.at(path)
	if err := again(func() error { return unix.Fstatat(fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
		return facts{}, err // mostly that there is none: no path is worth its price
	}
	return factsOf(&st), nil
}

func factsOf(s *unix.Stat_t) facts {
	return facts{
		bytes: uint64(s.Size), modified: time.Unix(s.Mtim.Unix()), regular: s.Mode&unix.S_IFMT == unix.S_IFREG,
		identity: identity{uint64(s.Dev), s.Ino}, //nolint:unconvert // not the same type on every system
	}
}

// identity is the number of a file.
type identity struct{ disk, file uint64 }

func (i identity) is(other identity) bool { return i == other }

func (s *system) open(path string) (object, error) {
	r := &reading{path: path}
	fd, name := s.at(path)
	err := again(func() (err error) {
		r.fd, err = unix.Openat(fd, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return r, nil
}

// reading is an open file without what package os has around it.
type reading struct {
	path string
	fd   int
	file *os.File // nil until somebody wants it; then it has the descriptor
}

func (r *reading) Read(p []byte) (n int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	err = again(func() (err error) {
		n, err = unix.Read(r.fd, p)
		return err
	})
	switch {
	case err != nil:
		return 0, &os.PathError{Op: "read", Path: r.path, Err: err}
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (r *reading) look() (facts, error) {
	var s unix.Stat_t
	if err := again(func() error { return unix.Fstat(r.fd, &s) }); err != nil {
		return facts{}, &os.PathError{Op: "stat", Path: r.path, Err: err}
	}
	return factsOf(&s), nil
}

func (r *reading) osFile() *os.File {
	if r.file == nil {
		r.file = os.NewFile(uintptr(r.fd), r.path)
	}
	return r.file
}

func (r *reading) Close() error {
	if r.file != nil {
		return r.file.Close()
	}
	return closeFile(r.fd, r.path)
}

func (s *system) rename(from, to string) error {
	fromFD, fromName := s.at(from)
	toFD, toName := s.at(to)
	if err := again(func() error { return unix.Renameat(fromFD, fromName, toFD, toName) }); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func (s *system) create(path string) (io.WriteCloser, error) {
	w := &writer{path: path}
	fd, name := s.at(path)
	err := again(func() (err error) {
		w.fd, err = unix.Openat(fd, name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444)
		return err
	})
	if err != nil {
		return nil, &os.PathError{Op: "create", Path: path, Err: err}
	}
	return w, nil
}

// writer is a file that is only written, by one goroutine.
type writer struct {
	path string
	fd   int
}

func (w *writer) Write(p []byte) (n int, err error) {
	for n < len(p) {
		var more int
		err := again(func() (err error) {
			more, err = unix.Write(w.fd, p[n:])
			return err
		})
		if err == nil && more == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return n, &os.PathError{Op: "write", Path: w.path, Err: err}
		}
		n += more
	}
	return n, nil
}

func (w *writer) Close() error { return closeFile(w.fd, w.path) }

func closeFile(fd int, path string) error {
	if err := unix.Close(fd); err != nil && !errors.Is(err, unix.EINTR) { // interrupted, it is closed all the same
		return &os.PathError{Op: "close", Path: path, Err: err}
	}
	return nil
}

// again repeats a call that a signal interrupted.
func again(call func() error) error {
	for {
		if err := call(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
