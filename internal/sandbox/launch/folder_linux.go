package launch

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// spaceKey says for whom a folder's user namespace is.
type spaceKey struct {
	slot     int
	uid, gid uint32
}

// folder opens an attempt's folder as a mount that is attached nowhere, without devices and set-user-id bits, in which its
// owner appears as the step of a slot, and makes in it what layers need. Nothing on its path may be a symbolic link. Only
// the cell of the slot calls it.
func (c *cell) folder(path string, layers []sandbox.Layer) (*os.File, error) {
	open, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = open.Close() }()
	if err := c.furnish(open, layers); err != nil {
		return nil, err
	}
	return c.shifted(open, path)
}

// furnish makes in an attempt's folder what it has to have.
func (c *cell) furnish(folder *os.File, layers []sandbox.Layer) error {
	at := int(folder.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return err
	}
	for _, name := range []string{"home", "tmp"} {
		if err := c.add(at, name, 0o700, st.Uid, st.Gid); err != nil {
			return fmt.Errorf("make %s/%s: %w", folder.Name(), name, err)
		}
	}
	if err := c.places(at, layers, st.Uid, st.Gid); err != nil {
		return fmt.Errorf("layers of %s: %w", folder.Name(), err)
	}
	return nil
}

// shifted makes a mount of an attempt's folder, in which its owner appears as the step. path leads to it.
func (c *cell) shifted(folder *os.File, path string) (*os.File, error) {
	at := int(folder.Fd())
	var st unix.Stat_t
	if err := unix.Fstat(at, &st); err != nil {
		return nil, err
	}
	tree, err := unix.OpenTree(at, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("mount of %s: %w", path, err)
	}
	mount := os.NewFile(uintptr(tree), path)
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &unix.MountAttr{Attr_set: c.plainAttrs()})
	if err == nil && !c.l.cfg.Rootless {
		err = c.shift(mount, path, st.Uid, st.Gid)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mount of %s: %w", path, err), mount.Close())
	}
	return mount, nil
}

// add makes a folder of the attempt, unless there is something with its name.
func (c *cell) add(at int, name string, mode, uid, gid uint32) error {
	err := unix.Mkdirat(at, name, mode)
	if errors.Is(err, unix.EEXIST) {
		return nil
	}
	if err != nil || c.l.cfg.Rootless {
		return err
	}
	return unix.Fchownat(at, name, int(uid), int(gid), unix.AT_SYMLINK_NOFOLLOW)
}

// shift makes the owner of a folder appear as the step. Where the file system cannot do that, the folder becomes the step's.
func (c *cell) shift(mount *os.File, path string, uid, gid uint32) error {
	space, err := c.l.spaceOf(spaceKey{c.slot, uid, gid})
	if err != nil {
		return err
	}
	raw, err := mount.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = raw.Control(func(fd uintptr) {
		serr = unix.MountSetattr(int(fd), "", unix.AT_EMPTY_PATH, &unix.MountAttr{
			Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(space.Fd()),
		})
	})
	if err != nil || serr == nil {
		return err
	}
	if !errors.Is(serr, unix.EINVAL) && !errors.Is(serr, unix.EOPNOTSUPP) && !errors.Is(serr, unix.ENOSYS) {
		return serr
	}
	return c.own(path)
}

// own gives a folder and what is in it to the step. Nobody else is at work in it.
func (c *cell) own(path string) error {
	uid, gid := c.l.firstID(c.slot)+sandbox.StepUID, c.l.firstID(c.slot)+sandbox.StepGID
	return filepath.WalkDir(path, func(p string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(p, uid, gid)
	})
}

// spaceOf returns the user namespace for a folder's owner in a slot. It is kept for the next attempt with that slot.
func (l *launcher) spaceOf(key spaceKey) (*os.File, error) {
	l.spacesMu.Lock()
	space := l.spaces[key]
	l.spacesMu.Unlock()
	if space != nil {
		return space, nil
	}
	space, err := l.idSpace(key.slot, key.uid, key.gid) // a slot has one cell, so nobody else makes the same
	if err != nil {
		return nil, err
	}
	l.spacesMu.Lock()
	defer l.spacesMu.Unlock()
	l.spaces[key] = space
	return space, nil
}
