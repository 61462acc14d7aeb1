package keeper

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// inMemory checks that a folder is on no disk.
func inMemory(dir string) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return err
	}
	if s.Type != unix.TMPFS_MAGIC && s.Type != unix.RAMFS_MAGIC {
		return fmt.Errorf("%s is on no file system in memory; mount a tmpfs there, or use variables", dir)
	}
	return nil
}
