package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// locked are the attributes that keep everybody from changing a file: FS_APPEND_FL and FS_IMMUTABLE_FL of linux/fs.h.
const locked = 0x20 | 0x10

// unlock takes the attributes away that keep root from changing an entry, if it is a file or folder that has them. Where
// that cannot be done, what follows says why. It reports whether there is a reason to try again.
func unlock(in *os.Root, name string) bool {
	info, err := in.Lstat(name)
	if err != nil || !info.IsDir() && !info.Mode().IsRegular() {
		return false
	}
	file, err := in.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) && info.IsDir() && in.Chmod(name, 0o700) == nil {
		file, err = in.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	}
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	flags, err := unix.IoctlGetUint32(int(file.Fd()), unix.FS_IOC_GETFLAGS)
	return err == nil && flags&locked != 0 &&
		unix.IoctlSetPointerInt(int(file.Fd()), unix.FS_IOC_SETFLAGS, int(flags&^uint32(locked))) == nil
}

// busy reports whether something is mounted on what could not be removed.
func busy(err error) bool { return errors.Is(err, unix.EBUSY) }

// mounted reports whether a folder in another is one that something was mounted on. Where the kernel does not say which mount
// a folder is of (before Linux 5.8), its device says so of most.
func mounted(in, f *folder) bool {
	above, ok := mountOf(in.dir)
	own, alsoOK := mountOf(f.dir)
	return ok && alsoOK && above != own
}

// mount tells mounts apart.
type mount struct {
	id           uint64 // zero where the kernel does not say
	major, minor uint32
}

func mountOf(dir *os.File) (mount, bool) {
	var s unix.Statx_t
	if err := unix.Statx(int(dir.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_STATX_DONT_SYNC, unix.STATX_MNT_ID, &s); err != nil {
		return mount{}, false
	}
	if s.Mask&unix.STATX_MNT_ID != 0 {
		return mount{id: s.Mnt_id}, true // the devices may well differ: subvolumes have their own
	}
	return mount{major: s.Dev_major, minor: s.Dev_minor}, true
}

// unmount takes a mount away that a workload has made or left, and not what is in it: that is somebody else's.
func unmount(in *folder, name string) error {
	path := fmt.Sprintf("/proc/self/fd/%d/%s", in.dir.Fd(), name)
	if err := unix.Unmount(path, unix.MNT_DETACH|unix.UMOUNT_NOFOLLOW); err != nil {
		return fmt.Errorf("something is mounted on %s, and cannot be unmounted: %w", name, err)
	}
	return nil
}
