package view

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// A mount here is a file: made attached nowhere, given its flags, then attached at a place that is named relative to another
// mount. No step of it looks a path up that somebody else could have changed.

const (
	attrPlain  = unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV
	attrBind   = unix.MOUNT_ATTR_RDONLY | attrPlain
	attrData   = attrPlain | unix.MOUNT_ATTR_NOEXEC
	attrDevice = unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NOEXEC
)

// option is a parameter of a file system; without a value it is a flag.
type option struct{ key, value string }

// fresh makes a new file system, attached nowhere.
func fresh(kind string, attrs int, options ...option) (*os.File, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open file system %s: %w", kind, err)
	}
	defer unix.Close(fs)
	for _, o := range options {
		if err := unix.FsconfigSetString(fs, o.key, o.value); err != nil {
			return nil, fmt.Errorf("file system %s: set %s=%s: %w", kind, o.key, o.value, err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("make file system %s: %w", kind, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, attrs)
	if err != nil {
		return nil, fmt.Errorf("mount file system %s: %w", kind, err)
	}
	return os.NewFile(uintptr(fd), kind), nil
}

// memory makes a file system in memory with bounds on bytes and files.
func memory(attrs int, size forge.Bytes, inodes int, mode uint32, more ...option) (*os.File, error) {
	return fresh("tmpfs", attrs, append([]option{
		{"size", strconv.FormatUint(uint64(size), 10)},
		{"nr_inodes", strconv.Itoa(inodes)},
		{"mode", strconv.FormatUint(uint64(mode), 8)},
	}, more...)...)
}

// tree copies the mounts at a path, with all below it, attached nowhere and apart from what happens to the originals.
func tree(dirfd int, path string, attrs uint64) (*os.File, error) {
	fd, err := unix.OpenTree(dirfd, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, fmt.Errorf("copy the mounts at %s: %w", path, err)
	}
	f := os.NewFile(uintptr(fd), path)
	if err := setAttrs(f, attrs, true); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// setAttrs adds flags to a mount, or to all of a tree of mounts, and takes it out of every peer group.
func setAttrs(mount *os.File, attrs uint64, recursive bool) error {
	flags := uint(unix.AT_EMPTY_PATH)
	if recursive {
		flags |= unix.AT_RECURSIVE
	}
	attr := unix.MountAttr{Attr_set: attrs, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(int(mount.Fd()), "", flags, &attr); err != nil {
		return fmt.Errorf("set the flags of the mount at %s: %w", mount.Name(), err)
	}
	return nil
}

// attach puts a mount at a place below another one. No link is followed on the way.
func attach(mount *os.File, below *os.File, place string) error {
	at, err := placeAt(below, place)
	if err != nil {
		return err
	}
	defer at.Close()
	err = unix.MoveMount(int(mount.Fd()), "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("attach %s at %s: %w", mount.Name(), place, err)
	}
	return nil
}

// placeAt opens a place below a mount, whatever it is, without following links.
func placeAt(below *os.File, place string) (*os.File, error) {
	fd, err := unix.Openat2(int(below.Fd()), place, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS,
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", place, err)
	}
	return os.NewFile(uintptr(fd), place), nil
}

// kindAt says what an open place is.
func kindAt(place *os.File) (Kind, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(place.Fd()), &st); err != nil {
		return Absent, fmt.Errorf("look at %s: %w", place.Name(), err)
	}
	if st.Mode&unix.S_IFMT == unix.S_IFDIR {
		return IsFolder, nil
	}
	return IsFile, nil
}
