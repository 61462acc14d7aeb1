// Package image makes file systems of a fixed size, each for what one attempt may write. One is an ext4 in a sparse file that
// has no name, behind a loop device that the kernel takes away with its last user, in a mount that is attached nowhere:
//
//	file without a name ── loop device (autoclear) ── ext4 ── Image.Mount
//
// So nothing has to be cleaned up after whoever holds it was killed: with the last descriptor the mount goes, with that the
// device, with that the file and what it took of the disk. What is written in it never counts for more than its size, and
// what comes too late is told ENOSPC by the kernel itself.
//
// Formatting is done by mkfs.ext4, once for each size, and in memory: further images of that size are copies of what it
// wrote. The one that works in an image never writes the bytes of the image, so the kernel trusts only what mkfs and
// itself have made. There is a journal, though nothing of an image outlives a crash: without one, ext4 takes many times as
// long to make files where others were deleted a minute ago.
//
// The package attaches no mount and starts no goroutines. It needs the rights of root over the machine.
package image

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of what an image is made for.
const (
	MinLimit = 4 * forge.MiB // mkfs makes no journal in less
	MaxLimit = forge.TiB
)

// Image is a file system that is nowhere.
type Image struct {
	Mount  *os.File // as a mount of it that is attached nowhere; it is open to its root alone
	Watch  *os.File // a file in it without a name, opened before anybody has written; it takes what there is beyond the limit
	Device string   // the name of its loop device
	Limit  forge.Bytes
}

// Close gives the image up. It is gone when everybody else has, too.
func (i *Image) Close() error { return errors.Join(i.Watch.Close(), i.Mount.Close()) }

// Maker makes images. It may be used by several goroutines at once.
type Maker struct {
	// Start starts mkfs such that it ends with this process.
	Start func(*exec.Cmd) error

	mu        sync.Mutex
	templates []*template // the last used is the last
}

// Make makes an image that holds limit, in a folder's file system.
func (m *Maker) Make(in *os.File, limit forge.Bytes) (*Image, error) {
	image, err := m.make(in, limit)
	if err != nil {
		return nil, fmt.Errorf("a disk of %v: %w", limit, err)
	}
	return image, nil
}

func (m *Maker) make(in *os.File, limit forge.Bytes) (*Image, error) {
	if limit < MinLimit || limit > MaxLimit {
		return nil, fmt.Errorf("it must have %v to %v", MinLimit, MaxLimit)
	}
	file, err := nameless(in)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // the loop device has its own
	m.mu.Lock()
	t, err := m.template(limit)
	m.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := t.copyTo(file); err != nil {
		return nil, fmt.Errorf("copy what mkfs wrote: %w", err)
	}
	return mount(file, limit)
}

// nameless makes a file that goes with its last descriptor.
func nameless(in *os.File) (*os.File, error) {
	fd, err := unix.Openat(int(in.Fd()), ".", unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("a file without a name in %s: %w", in.Name(), err)
	}
	return os.NewFile(uintptr(fd), "image"), nil
}

// mount mounts a file of which nobody else has a device.
func mount(file *os.File, limit forge.Bytes) (*Image, error) {
	device, err := attach(file, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = device.Close() }() // the mount has its own
	mounted, err := mountDevice(device, "rw")
	if err != nil {
		return nil, err
	}
	image := &Image{Mount: mounted, Device: device.Name()[len(deviceFolder):], Limit: limit}
	err = unix.Unlinkat(int(mounted.Fd()), "lost+found", unix.AT_REMOVEDIR)
	if errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if err == nil {
		image.Watch, err = fill(mounted, limit)
	}
	if err != nil {
		return nil, errors.Join(err, mounted.Close())
	}
	return image, nil
}

// fill opens a file without a name, which takes what a file system has besides its limit.
func fill(mount *os.File, limit forge.Bytes) (*os.File, error) {
	file, err := nameless(mount)
	if err != nil {
		return nil, err
	}
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(file.Fd()), &s); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	beyond := int64(s.Bavail)*int64(s.Bsize) - int64(limit+spare)
	if beyond < blockBytes {
		return file, nil
	}
	if err := unix.Fallocate(int(file.Fd()), 0, 0, beyond); err != nil {
		return nil, errors.Join(fmt.Errorf("take %d bytes of the new file system: %w", beyond, err), file.Close())
	}
	return file, nil
}

// options are those of the mounts. Nothing needs to be on the machine's disk at any moment, so that nothing is flushed to
// it, and the journal is not written for that. What was not written yet reads as zero, as it has to.
var options = [][2]string{
	{"noinit_itable", ""}, {"nodiscard", ""}, {"data", "writeback"}, {"nobarrier", ""}, {"commit", "60"}, {"errors", "remount-ro"},
}

// mountDevice mounts what is on a device, "rw" or "ro", attached nowhere.
func mountDevice(device *os.File, how string) (*os.File, error) {
	fs, err := unix.Fsopen("ext4", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("ext4: %w", err)
	}
	defer func() { _ = unix.Close(fs) }()
	if err := unix.FsconfigSetString(fs, "source", device.Name()); err != nil {
		return nil, fmt.Errorf("ext4 on %s: %w", device.Name(), err)
	}
	for _, o := range append([][2]string{{how, ""}}, options...) {
		if o[1] == "" {
			err = unix.FsconfigSetFlag(fs, o[0])
		} else {
			err = unix.FsconfigSetString(fs, o[0], o[1])
		}
		if err != nil {
			return nil, fmt.Errorf("ext4: set %s %s: %w", o[0], o[1], err)
		}
	}
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("mount ext4 on %s: %w", device.Name(), err)
	}
	fd, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV)
	if err != nil {
		return nil, fmt.Errorf("mount ext4 on %s: %w", device.Name(), err)
	}
	return os.NewFile(uintptr(fd), "image"), nil
}
