package disk

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/windows"
)

// openToSync opens for writing, which Windows wants of whoever flushes. Objects are read-only there by attribute, so that
// is lifted for the moment; nobody sees them before they have their names.
func openToSync(path string) (*os.File, error) {
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	return f, errors.Join(err, os.Chmod(path, 0o444))
}

func free(path string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var available uint64
	if err := windows.GetDiskFreeSpaceEx(name, &available, nil, nil); err != nil {
		return 0, &os.PathError{Op: "free space", Path: path, Err: err}
	}
	return available, nil
}

type system struct{}

// full reports whether an error says that the disk has no room.
func full(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

func (*system) enter(string) error { return nil }
func (*system) leave() error       { return nil }

func (*system) stat(path string) (facts, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return facts{}, err
	}
	return factsOf(info), nil
}

func factsOf(info os.FileInfo) facts {
	return facts{uint64(info.Size()), info.ModTime(), info.Mode().IsRegular(), identity{info}}
}

// identity is what Windows tells files apart by.
type identity struct{ info os.FileInfo }

func (i identity) is(other identity) bool { return os.SameFile(i.info, other.info) }

func (*system) open(path string) (object, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	return reading{f}, nil
}

type reading struct{ *os.File }

func (r reading) look() (facts, error) {
	info, err := r.Stat()
	if err != nil {
		return facts{}, err
	}
	return factsOf(info), nil
}

func (r reading) osFile() *os.File { return r.File }

func (*system) rename(from, to string) error { return os.Rename(from, to) }

func (*system) create(path string) (io.WriteCloser, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if err != nil {
		return nil, err
	}
	return f, nil
}
