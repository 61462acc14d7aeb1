package folder

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// place is an open folder, by its descriptor alone: package os takes three calls where one does, which is a third of what a
// small file costs. Names are single, and no call follows a link.
type place struct{ fd int }

// placeOf takes over a folder.
func placeOf(root *os.Root) (place, error) {
	f, err := root.Open(".")
	if err != nil {
		return place{}, errors.Join(err, root.Close())
	}
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	return place{fd}, errors.Join(err, f.Close(), root.Close())
}

func (p place) mkdir(name string) (place, error) {
	if err := again(func() error { return unix.Mkdirat(p.fd, name, 0o700) }); err != nil {
		return place{}, &fs.PathError{Op: "mkdir", Path: name, Err: err}
	}
	fd, err := p.open(name, unix.O_RDONLY|unix.O_DIRECTORY)
	return place{fd}, err
}

func (p place) open(name string, flags int) (fd int, err error) {
	err = again(func() (err error) {
		fd, err = unix.Openat(p.fd, name, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
		return err
	})
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return fd, nil
}

// create makes a file, which must not be there.
func (p place) create(name string) (*File, error) {
	fd, err := p.open(name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return nil, err
	}
	return &File{name: name, fd: fd}, nil
}

// link makes a link and gives it its looks, as far as links have any.
func (p place) link(target, name string, owner *Owner) error {
	err := again(func() error { return unix.Symlinkat(target, p.fd, name) })
	if err == nil && owner != nil {
		err = unix.Fchownat(p.fd, name, owner.UID, owner.GID, unix.AT_SYMLINK_NOFOLLOW)
	}
	if err == nil {
		err = unix.UtimesNanoAt(p.fd, name, epochSpec[:], unix.AT_SYMLINK_NOFOLLOW)
	}
	if err != nil {
		return &fs.PathError{Op: "link", Path: name, Err: err}
	}
	return nil
}

func (p place) dress(mode fs.FileMode, owner *Owner) error { return dress(p.fd, mode, owner) }

func (p place) close() error { return unix.Close(p.fd) }

// File is a file that is being written, by one goroutine.
type File struct {
	name string
	fd   int
	file *os.File // nil until somebody wants it; then it has the descriptor
}

// Write writes all of p.
func (f *File) Write(p []byte) (n int, err error) {
	for n < len(p) {
		var more int
		err := again(func() (err error) {
			more, err = unix.Write(f.fd, p[n:])
			return err
		})
		if err == nil && more == 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return n, &fs.PathError{Op: "write", Path: f.name, Err: err}
		}
		n += more
	}
	return n, nil
}

// File is the same file for package os. It is not to be closed.
func (f *File) File() *os.File {
	if f.file == nil {
		f.file = os.NewFile(uintptr(f.fd), f.name)
	}
	return f.file
}

func (f *File) dress(mode fs.FileMode, owner *Owner) error { return dress(f.fd, mode, owner) }

func (f *File) close() error {
	if f.file != nil {
		return f.file.Close()
	}
	return unix.Close(f.fd)
}

// dress gives an open file or folder its owner, its mode and its time.
func dress(fd int, mode fs.FileMode, owner *Owner) error {
	if owner != nil {
		if err := again(func() error { return unix.Fchown(fd, owner.UID, owner.GID) }); err != nil {
			return os.NewSyscallError("fchown", err)
		}
	}
	if err := again(func() error { return unix.Fchmod(fd, uint32(mode.Perm())) }); err != nil {
		return os.NewSyscallError("fchmod", err)
	}
	return os.NewSyscallError("futimens", setTime(fd))
}

// epochSpec is Epoch for the system, as times of access and change.
var epochSpec = [2]unix.Timespec{{Sec: Epoch.Unix()}, {Sec: Epoch.Unix()}}

// setTime is futimens, which package unix has only with a path.
func setTime(fd int) error {
	_, _, err := unix.Syscall6(unix.SYS_UTIMENSAT, uintptr(fd), 0, uintptr(unsafe.Pointer(&epochSpec[0])), 0, 0, 0)
	if err != 0 {
		return err
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
