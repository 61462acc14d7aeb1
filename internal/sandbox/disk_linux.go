package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Disk is a file system that one sandbox alone writes. It lies in a file on the machine's disk, which has it only for as
// long as the box is not closed. Its methods may be called from several goroutines at once, until then.
type Disk struct {
	Limit  forge.Bytes
	root   *os.File // a file in it that was opened before anybody had written
	device string
}

// Room is how many bytes and names it has left for the sandbox.
func (d *Disk) Room() (bytes forge.Bytes, names uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Fstatfs(int(d.root.Fd()), &s); err != nil {
		return 0, 0, fmt.Errorf("look at the disk of a sandbox: %w", err)
	}
	return forge.Bytes(s.Bavail) * forge.Bytes(s.Bsize), s.Ffree, nil
}

// Lost returns an error where something that was written did not come to be in the file: the machine's own disk was full or
// broke, and the sandbox may have heard nothing of it. What it has left is not to be trusted then. It holds once nothing
// of the sandbox is alive.
func (d *Disk) Lost() error {
	if d.calm() {
		return nil
	}
	if err := unix.Syncfs(int(d.root.Fd())); err != nil {
		return fmt.Errorf("what the job has written was lost, because the disk of this machine is full or broken: %w", err)
	}
	return nil
}

// calm reports whether the kernel has noted nothing unusual about the file system. A job can make it note something, so that
// this alone says nothing against one.
func (d *Disk) calm() bool {
	for _, name := range []string{"warning_count", "errors_count"} {
		if n, err := d.counted(name); err != nil || n != 0 {
			return false
		}
	}
	return true
}

// counted reads a number that the kernel keeps of the file system.
func (d *Disk) counted(name string) (uint64, error) {
	text, err := os.ReadFile("/sys/fs/ext4/" + d.device + "/" + name)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
}

// Shutting a file system down says so in the kernel's log, so that it is done only where it saves more than this.
const worthShutdown = 16 << 20

const (
	ioctlShutdown   = 0x8004587d // FS_IOC_SHUTDOWN
	shutdownNoFlush = 2
)

// close takes it down. What was not written into the file yet is not worth being written any more.
func (d *Disk) close() {
	const block = 4096
	if waits, err := d.counted("delayed_allocation_blocks"); err == nil && waits*block > worthShutdown {
		_ = unix.IoctlSetPointerInt(int(d.root.Fd()), ioctlShutdown, shutdownNoFlush) // else it takes longer
	}
	if err := d.root.Close(); err != nil && !errors.Is(err, fs.ErrClosed) {
		return // it is nothing that anybody could mend, and nothing depends on it
	}
}
