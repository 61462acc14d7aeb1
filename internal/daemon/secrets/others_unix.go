//go:build unix

package secrets

import (
	"io/fs"

	"github.com/forgeyard/forgeyard/internal/disk"
)

// othersCanRead reports whether anybody else knows what is in a file: its owner is one who does.
func othersCanRead(info fs.FileInfo) bool {
	return !disk.Ours(info) || info.Mode().Perm()&0o077 != 0 || !info.Mode().IsRegular()
}
