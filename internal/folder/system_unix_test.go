//go:build unix

package folder_test

import (
	"os"
	"syscall"
	"testing"
)

func ownedBy(t *testing.T, path string, uid, gid uint32) bool {
	t.Helper()
	info, err := os.Lstat(path)
	must(t, err)
	st := info.Sys().(*syscall.Stat_t)
	return st.Uid == uid && st.Gid == gid
}

// descriptors counts this process's, where there is a /proc.
func descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if os.IsNotExist(err) {
		return 0
	}
	must(t, err)
	return len(entries)
}
