package snapshot

import (
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// sourceFile is a file of the source that is read, by one goroutine. It is a bare descriptor where the kernel opens a path
// within a folder in one step (5.6): package os takes a step for each folder of the path and looks at every file twice,
// which is most of the time that a small one takes.
type sourceFile struct {
	*os.File // nil where there is the descriptor alone
	fd       int
}

// openSource opens a path with slashes below the root, at which look looks too: wherever links within it lead, but not out
// of it.
func openSource(look *looker, root *os.Root, path string) (sourceFile, error) {
	fd, err := unix.Openat2(look.fd, path, &unix.OpenHow{
		Flags:   unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err == nil {
		return sourceFile{fd: fd}, nil
	}
	f, err := root.OpenFile(filepath.FromSlash(path), openFlags, 0) // an old kernel, or an error that it says better
	return sourceFile{File: f}, err
}

func (f sourceFile) stamp() (stamp, error) {
	if f.File != nil {
		return stampOfFile(f.File)
	}
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return stamp{}, err
	}
	return stampOf(&st), nil
}

func (f sourceFile) Read(p []byte) (int, error) {
	if f.File != nil {
		return f.File.Read(p)
	}
	for {
		switch n, err := unix.Read(f.fd, p); {
		case err == unix.EINTR: //nolint:errorlint // bare from the call
		case err != nil:
			return 0, err
		case n == 0 && len(p) > 0:
			return 0, io.EOF
		default:
			return n, nil
		}
	}
}

func (f sourceFile) Close() error {
	if f.File != nil {
		return f.File.Close()
	}
	return unix.Close(f.fd)
}
