package workspace

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// locked are the attributes that keep everybody from changing a file: FS_APPEND_FL and FS_IMMUTABLE_FL of linux/fs.h.
const locked = 0x20 | 0x10

// unlock takes the attributes away that keep root from changing an entry, if it is a file or folder that has them. Where
// that cannot be done, what follows says why.
func unlock(in *os.Root, name string) {
	info, err := in.Lstat(name)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return
	}
	file, err := in.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) && info.IsDir() && in.Chmod(name, 0o700) == nil {
		file, err = in.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	}
	if err != nil {
		return
	}
	defer func() { _ = file.Close() }()
	flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	if err == nil && flags&locked != 0 {
		_ = unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, int(flags&^uint32(locked)))
	}
}
