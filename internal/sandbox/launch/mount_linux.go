package launch

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Mounts are files here, as in package view: every call names them by descriptors, and none by a path that somebody could
// have changed.

// openFolder opens a folder. Nothing on its path may be a symbolic link.
func openFolder(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{
		Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// below opens a folder in a mount, on the same mount and without a link on the way.
func below(mount *os.File, name string) (*os.File, error) { return beneath(int(mount.Fd()), name) }

func beneath(at int, name string) (*os.File, error) {
	fd, err := unix.Openat2(at, name, &unix.OpenHow{
		Flags:   unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV,
	})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return os.NewFile(uintptr(fd), name), nil
}

// moveMount attaches a mount at an open place.
func moveMount(mount, place *os.File) error {
	err := unix.MoveMount(int(mount.Fd()), "", int(place.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	if err != nil {
		return fmt.Errorf("attach %s at %s: %w", mount.Name(), place.Name(), err)
	}
	return nil
}

// detach takes an attached mount off its place, with all that is attached below it.
func detach(mount *os.File) error {
	if err := unix.Unmount(handle(mount), unix.MNT_DETACH); err != nil {
		return fmt.Errorf("detach %s: %w", mount.Name(), err)
	}
	return nil
}

// cloneTree copies a mount and those below it, attached nowhere, with flags besides those that each has.
func cloneTree(mount *os.File, attrs uint64) (*os.File, error) {
	fd, err := unix.OpenTree(int(mount.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("copy the mounts at %s: %w", mount.Name(), err)
	}
	tree := os.NewFile(uintptr(fd), mount.Name())
	attr := &unix.MountAttr{Attr_set: attrs, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, attr); err != nil {
		_ = tree.Close()
		return nil, fmt.Errorf("flags of the mounts at %s: %w", mount.Name(), err)
	}
	return tree, nil
}

// freshMount makes a new file system, attached nowhere. An option without a value is a flag.
func freshMount(kind string, attrs uint64, options ...[2]string) (*os.File, error) {
	fs, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("file system %s: %w", kind, err)
	}
	defer func() { _ = unix.Close(fs) }()
	for _, o := range options {
		if o[1] == "" {
			err = unix.FsconfigSetFlag(fs, o[0])
		} else {
			err = unix.FsconfigSetString(fs, o[0], o[1])
		}
		if err != nil {
			return nil, fmt.Errorf("file system %s: set %s=%s: %w", kind, o[0], o[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("make file system %s: %w", kind, err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, int(attrs))
	if err != nil {
		return nil, fmt.Errorf("mount file system %s: %w", kind, err)
	}
	return os.NewFile(uintptr(fd), kind), nil
}

// handle names an open file for calls that take nothing but a path. What it leads to cannot be changed by anybody.
func handle(f *os.File) string { return "/proc/self/fd/" + strconv.Itoa(int(f.Fd())) }
