//go:build unix

package trust

import (
	"os"
	"syscall"
)

// ours reports whether a file belongs to the user who runs this process: what belongs to another one is that one's to change,
// whatever its mode.
func ours(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == uint32(os.Geteuid())
}
