//go:build unix

package daemon

import "io/fs"

func othersCanRead(info fs.FileInfo) bool {
	return info.Mode().Perm()&0o077 != 0 || !info.Mode().IsRegular()
}
