package treecache

import (
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

const platformHazards = hazards(0)

// errQuota is what a disk says that is full for us only.
var errQuota = unix.EDQUOT

// clone shares the bytes of a file with an empty one.
func clone(to, from *os.File) error { return unix.IoctlFileClone(int(to.Fd()), int(from.Fd())) }

// bootID names the time since this machine was started; empty where that is not known.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// syncAll flushes the file system that a folder is on.
func syncAll(root *os.Root) error {
	dir, err := root.Open(".")
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(dir.Fd())), dir.Close())
}

// space is what a disk has left.
type space struct {
	bytes forge.Bytes
	names uint64
}

func freeSpace(path string) (space, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return space{}, err
	}
	free := space{bytes: forge.Bytes(s.Bavail * uint64(s.Bsize)), names: s.Ffree}
	if s.Files == 0 {
		free.names = ^uint64(0) // makes them as they are needed
	}
	return free, nil
}
