//go:build unix

package workspace

import (
	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func diskSpace(path string) (free, total forge.Bytes, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, 0, err
	}
	return forge.Bytes(uint64(s.Bavail) * uint64(s.Bsize)), forge.Bytes(s.Blocks * uint64(s.Bsize)), nil
}
