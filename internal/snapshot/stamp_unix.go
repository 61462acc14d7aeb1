//go:build unix

package snapshot

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// foldersTell says that a folder's stamp changes with its names.
const foldersTell = true

// openFlags open a file for reading, and do not wait for a writer should it have become a FIFO.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// looker looks at paths below one folder.
type looker struct {
	folder *os.File
	fd     int // of folder
}

func newLooker(root *os.Root) (*looker, error) {
	folder, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	return &looker{folder, int(folder.Fd())}, nil
}

func (l *looker) close() error { return l.folder.Close() }

// stamp looks at a path with slashes, not following a link at its end. Its errors are bare; os.IsNotExist knows them.
func (l *looker) stamp(path string) (stamp, error) {
	if path == "" {
		path = "."
	}
	var st unix.Stat_t
	for {
		err := unix.Fstatat(l.fd, path, &st, unix.AT_SYMLINK_NOFOLLOW)
		if err == nil {
			return stampOf(&st), nil
		}
		if err != unix.EINTR { //nolint:errorlint // bare from the call
			return stamp{}, err
		}
	}
}

// stampOfFile looks at an open file.
func stampOfFile(f *os.File) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return stamp{}, err
	}
	return stampOf(&st), nil
}

// stampAt looks at a path anywhere.
func stampAt(path string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return stamp{}, err
	}
	return stampOf(&st), nil
}

func stampOf(st *unix.Stat_t) stamp {
	return stamp{
		size: st.Size, mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
		inode: st.Ino, mode: uint32(st.Mode), //nolint:unconvert // not the same type on every system
	}
}
