package launch

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/image"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

// errNoLayers says that this kernel, or a file system of this machine, cannot put a layer over a folder.
var errNoLayers = errors.New("folders cannot be put in layers here")

// Names below sandbox.LayersDir/<number of the layer>. Both belong to overlayfs alone while there is a mount.
const (
	upperDir = "upper" // what the sandbox has written
	spareDir = "work"
)

// layered shows an attempt's folder with its layers, as two equal trees of mounts that are attached nowhere: one for pid 1,
// and one through which the agent reads what is there once the sandbox is dead. That one cannot be written, and needs no
// launcher: it stays as long as somebody has its file open.
//
// A tree of mounts can be built only where it is attached. That is over the attempt's folder itself, in the launcher's own
// mount namespace, where nobody else sees it, and taken off again before the call returns.
func (c *cell) layered(folder *os.File, at string, layers []sandbox.Layer) (inside, outside *os.File, err error) {
	if err := c.l.aloneWithMounts(); err != nil {
		return nil, nil, err
	}
	place, err := openFolder(at)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = place.Close() }()
	if err := moveMount(folder, place); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, detach(folder)) }()
	return c.copies(folder, place, layers)
}

// onDisk does the same with a folder that is a file system of its own: it is attached over the attempt's folder, what is in
// that is made again in it, and over it comes the mount that folder makes of others.
func (c *cell) onDisk(disk *image.Image, at string, layers []sandbox.Layer) (inside, outside *os.File, err error) {
	if err := c.l.aloneWithMounts(); err != nil {
		return nil, nil, err
	}
	place, err := openFolder(at)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = place.Close() }()
	if err := mirror(place, disk.Mount); err != nil {
		return nil, nil, fmt.Errorf("what is in %s: %w", at, err)
	}
	if err := c.furnish(disk.Mount, layers); err != nil {
		return nil, nil, err
	}
	if err := moveMount(disk.Mount, place); err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, detach(disk.Mount)) }() // with what is on it
	folder, err := c.shifted(disk.Mount, at)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = folder.Close() }()
	if err := moveMount(folder, disk.Mount); err != nil {
		return nil, nil, err
	}
	return c.copies(folder, disk.Mount, layers)
}

// copies puts layers over an attached folder, and returns what that is, twice. plain is the folder without ids that are
// others.
func (c *cell) copies(folder, plain *os.File, layers []sandbox.Layer) (inside, outside *os.File, err error) {
	if len(layers) > 0 {
		if err := c.stack(folder, plain, layers); err != nil {
			return nil, nil, err
		}
	}
	if inside, err = cloneTree(folder, 0); err != nil {
		return nil, nil, err
	}
	if outside, err = cloneTree(folder, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC); err != nil {
		return nil, nil, errors.Join(err, inside.Close())
	}
	return inside, outside, nil
}

// aloneWithMounts refuses to attach anything where the agent would see it. It cannot be otherwise unless somebody started
// the launcher in another way than package sandbox does.
func (l *launcher) aloneWithMounts() error {
	var own unix.Stat_t
	if err := unix.Fstat(int(l.mountNS.Fd()), &own); err != nil {
		return err
	}
	if l.cfg.MountNS == 0 || own.Ino == l.cfg.MountNS {
		return errors.New("the launcher has no mount namespace of its own")
	}
	return nil
}

// stack attaches the layers, and covers the place where they are kept.
func (c *cell) stack(folder, plain *os.File, layers []sandbox.Layer) error {
	for i := range layers {
		if err := c.layer(folder, plain, i, &layers[i]); err != nil {
			return fmt.Errorf("layer over %s at %s: %w", layers[i].Folder, layers[i].Mount, err)
		}
	}
	if c.l.cfg.Switches.Off(view.DefenceCoveredLayers) {
		return nil
	}
	place, err := below(folder, sandbox.LayersDir)
	if err != nil {
		return err
	}
	defer func() { _ = place.Close() }()
	cover, err := freshMount("tmpfs", unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOEXEC|c.plainAttrs(),
		[2]string{"size", "4096"}, [2]string{"nr_inodes", "1"}, [2]string{"mode", "0555"})
	if err != nil {
		return err
	}
	defer func() { _ = cover.Close() }()
	return moveMount(cover, place)
}

// layer attaches one layer: the folder itself, which cannot be written, or an overlay with it as the lower half.
func (c *cell) layer(folder, plain *os.File, number int, l *sandbox.Layer) error {
	place, err := below(folder, l.Mount)
	if err != nil {
		return err
	}
	defer func() { _ = place.Close() }()
	lower, err := c.lower(l)
	if err != nil {
		return err
	}
	defer func() { _ = lower.Close() }()
	if err := moveMount(lower, place); err != nil || !l.Writable || c.l.cfg.Switches.Off(view.DefenceOwnLayers) {
		return err
	}
	over, err := c.overlay(plain, lower, number)
	if err := errors.Join(err, detach(lower)); err != nil { // an overlay has a mount of its own of it
		return err
	}
	defer func() { _ = over.Close() }()
	return moveMount(over, place)
}

// lower opens a layer's folder as a mount that cannot be written, in which its owner appears as the step.
func (c *cell) lower(l *sandbox.Layer) (*os.File, error) {
	path := l.Folder
	at, err := openFolder(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = at.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(at.Fd()), &st); err != nil {
		return nil, err
	}
	fd, err := unix.OpenTree(int(at.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("mount of %s: %w", path, err)
	}
	mount := os.NewFile(uintptr(fd), path)
	attr := &unix.MountAttr{Attr_set: c.lowerAttrs(l.Writable)}
	if !c.l.cfg.Rootless {
		space, err := c.l.spaceOf(spaceKey{c.slot, st.Uid, st.Gid})
		if err != nil {
			return nil, errors.Join(err, mount.Close())
		}
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(space.Fd())
	}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, attr); err != nil {
		return nil, errors.Join(asNoLayers(fmt.Errorf("mount of %s: %w", path, err)), mount.Close())
	}
	return mount, nil
}

// overlay puts a layer that can be written over a mount, with nothing in it yet. What the job writes is nobody's for longer
// than the attempt, so that it need not reach the disk (volatile), and nothing is left to be found by a later mount.
//
// The upper half is that of the plain folder: overlayfs makes files of the launcher's user in there, who is nobody where ids
// are others. So what the job writes belongs to the slot's step on the disk too.
func (c *cell) overlay(plain, lower *os.File, number int) (over *os.File, err error) {
	options := [][2]string{
		{"lowerdir", handle(lower)}, {"index", "off"}, {"metacopy", "off"}, {"redirect_dir", "nofollow"}, {"volatile", ""},
	}
	if c.l.cfg.Rootless {
		options = append(options, [2]string{"userxattr", ""})
	}
	for option, name := range map[string]string{"upperdir": upperDir, "workdir": spareDir} {
		half, err := below(plain, layerDir(number, name))
		if err != nil {
			return nil, err
		}
		defer func() { _ = half.Close() }()
		options = append(options, [2]string{option, handle(half)})
	}
	if err := c.remembers(plain, number); err != nil {
		return nil, err
	}
	over, err = freshMount("overlay", c.plainAttrs(), options...)
	if uerr := c.unlock(plain, number); err == nil && uerr != nil {
		return nil, errors.Join(uerr, over.Close())
	}
	if err != nil {
		return nil, asNoLayers(err)
	}
	// The kernel makes it one that cannot be written where it does not like the upper half.
	var st unix.Statfs_t
	if err = unix.Fstatfs(int(over.Fd()), &st); err == nil && st.Flags&unix.ST_RDONLY != 0 {
		err = fmt.Errorf("%w: the file system of the attempt's folder cannot be the upper half", errNoLayers)
	}
	if err != nil {
		return nil, errors.Join(err, over.Close())
	}
	return over, nil
}

// unlock makes the folders that overlayfs has made for itself, with no rights for anybody, ones that their owner can remove.
func (c *cell) unlock(plain *os.File, number int) error {
	spare, err := below(plain, layerDir(number, spareDir))
	if err != nil {
		return err
	}
	defer func() { _ = spare.Close() }()
	for _, name := range []string{"work", "work/incompat", "work/incompat/volatile"} {
		if err := unix.Fchmodat(int(spare.Fd()), name, 0o700, 0); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// remembers checks that the file system of the upper half can keep what overlayfs writes beside files. Without it, the mount
// works until a folder is removed and made again.
func (c *cell) remembers(plain *os.File, number int) error {
	attribute := "trusted.forgeyard"
	if c.l.cfg.Rootless {
		attribute = "user.forgeyard"
	}
	spare, err := below(plain, layerDir(number, spareDir))
	if err != nil {
		return err
	}
	defer func() { _ = spare.Close() }()
	if err := unix.Setxattr(handle(spare), attribute, []byte("kept"), 0); err != nil {
		return fmt.Errorf("%w: extended attributes of the attempt's folder: %w", errNoLayers, err)
	}
	return nil
}

// asNoLayers makes an error one of the kind errNoLayers, if it says that the kernel cannot do it and not that it failed.
func asNoLayers(err error) error {
	for _, cannot := range []unix.Errno{unix.EINVAL, unix.EOPNOTSUPP, unix.ENOSYS, unix.ENODEV, unix.EPERM, unix.EACCES, unix.EROFS} {
		if errors.Is(err, cannot) {
			return fmt.Errorf("%w: %w", errNoLayers, err)
		}
	}
	return err
}

// places makes what layers need in an attempt's folder: where they are to be attached, which belongs to the folder's owner,
// and the upper halves, which are the step's.
func (c *cell) places(at int, layers []sandbox.Layer, uid, gid uint32) error {
	for i := range layers {
		for _, name := range []string{layers[i].Mount, layerDir(i, upperDir), layerDir(i, spareDir)} {
			if err := c.addAll(at, name, uid, gid); err != nil {
				return fmt.Errorf("make %s: %w", name, err)
			}
		}
		if c.l.cfg.Rootless {
			continue
		}
		upper, err := beneath(at, layerDir(i, upperDir))
		if err != nil {
			return err
		}
		step := c.l.firstID(c.slot) + sandbox.StepUID
		err = unix.Fchownat(int(upper.Fd()), "", step, step, unix.AT_EMPTY_PATH)
		if err := errors.Join(err, upper.Close()); err != nil {
			return err
		}
	}
	return nil
}

// addAll makes a folder and those above it, unless they are there. No link on the way is followed.
func (c *cell) addAll(at int, name string, uid, gid uint32) error {
	in, last := path.Split(name)
	if in == "" {
		return c.add(at, last, 0o755, uid, gid)
	}
	if err := c.addAll(at, path.Clean(in), uid, gid); err != nil {
		return err
	}
	parent, err := beneath(at, path.Clean(in))
	if err != nil {
		return err
	}
	defer func() { _ = parent.Close() }()
	return c.add(int(parent.Fd()), last, 0o755, uid, gid)
}

func layerDir(number int, name string) string {
	return path.Join(sandbox.LayersDir, strconv.Itoa(number), name)
}

// lowerAttrs are the flags of a layer's folder.
func (c *cell) lowerAttrs(written bool) uint64 {
	defence := view.DefenceReadOnlyTrees
	if written {
		defence = view.DefenceOwnLayers
	}
	if c.l.cfg.Switches.Off(defence) {
		return c.plainAttrs()
	}
	return c.plainAttrs() | unix.MOUNT_ATTR_RDONLY
}

// plainAttrs are the flags of everything that a sandbox has of files.
func (c *cell) plainAttrs() uint64 {
	attrs := uint64(0)
	if !c.l.cfg.Switches.Off(view.DefenceNoSetUID) {
		attrs |= unix.MOUNT_ATTR_NOSUID
	}
	if !c.l.cfg.Switches.Off(view.DefenceNoDevices) {
		attrs |= unix.MOUNT_ATTR_NODEV
	}
	return attrs
}
