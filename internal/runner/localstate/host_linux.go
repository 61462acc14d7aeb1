package localstate

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

const bootFile = "/proc/sys/kernel/random/boot_id"

// bootID turns what the kernel drew at its start into an id of ours.
func bootID() (forge.BootID, error) {
	b, err := os.ReadFile(bootFile)
	if err != nil {
		return forge.BootID{}, fmt.Errorf("read the boot's id: %w", err)
	}
	sum := digest.Of(b)
	return forge.MakeID[forge.BootID](forge.ULID(sum[:16])), nil
}

func fingerprintOf(path string) (fingerprint, error) {
	var stat unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_STATX_SYNC_AS_STAT, unix.STATX_INO|unix.STATX_BTIME, &stat)
	if err != nil {
		return fingerprint{}, &os.PathError{Op: "statx", Path: path, Err: err}
	}
	if stat.Mask&unix.STATX_BTIME != 0 {
		return fingerprint{inode: stat.Ino, birth: stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)}, nil
	}
	var system unix.Statfs_t
	if err := unix.Statfs(path, &system); err != nil {
		return fingerprint{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	return fingerprint{inode: stat.Ino, where: uint64(uint32(system.Fsid.Val[0]))<<32 | uint64(uint32(system.Fsid.Val[1]))}, nil
}
