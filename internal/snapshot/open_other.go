//go:build !linux

package snapshot

import (
	"os"
	"path/filepath"
)

// sourceFile is a file of the source that is read.
type sourceFile struct{ *os.File }

// openSource opens a path with slashes below the root, at which look looks too: wherever links within it lead, but not out
// of it.
func openSource(_ *looker, root *os.Root, path string) (sourceFile, error) {
	f, err := root.OpenFile(filepath.FromSlash(path), openFlags, 0)
	return sourceFile{f}, err
}

func (f sourceFile) stamp() (stamp, error) { return stampOfFile(f.File) }
