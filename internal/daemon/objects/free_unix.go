//go:build unix

package objects

import (
	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// free is how many bytes the file system of a folder has left for this process.
func free(dir string) (forge.Bytes, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return forge.Bytes(st.Bavail) * forge.Bytes(st.Bsize), nil //nolint:gosec,unconvert // neither is negative; types differ by system
}
