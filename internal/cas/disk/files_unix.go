//go:build unix

package disk

import (
	"errors"
	"io"
	"os"
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

func (system) stat(path string) (facts, error) {
	var s unix.Stat_t
	if err := again(func() error { return unix.Lstat(path, &s) }); err != nil {
		return facts{}, err // mostly that there is none: no path is worth its price
	}
	return factsOf(&s), nil
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

func (system) open(path string) (object, error) {
	r := &reading{path: path}
	err := again(func() (err error) {
		r.fd, err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
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

func (system) rename(from, to string) error {
	if err := again(func() error { return unix.Rename(from, to) }); err != nil {
		return &os.LinkError{Op: "rename", Old: from, New: to, Err: err}
	}
	return nil
}

func (system) create(path string) (io.WriteCloser, error) {
	w := &writer{path: path}
	err := again(func() (err error) {
		w.fd, err = unix.Open(path, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_CLOEXEC, 0o444)
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
