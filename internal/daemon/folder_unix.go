//go:build unix

package daemon

import (
	"io/fs"
	"os"
	"syscall"
)

// othersCanRead reports whether anybody else knows what is in a file: its owner is one who does.
func othersCanRead(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || stat.Uid != uint32(os.Geteuid()) || info.Mode().Perm()&0o077 != 0 || !info.Mode().IsRegular()
}
