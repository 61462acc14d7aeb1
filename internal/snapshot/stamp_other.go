//go:build !unix

package snapshot

import (
	"os"
	"path/filepath"
)

// foldersTell says that a folder's stamp does not surely change with its names.
const foldersTell = false

const openFlags = os.O_RDONLY

// looker looks at paths below one folder.
type looker struct{ folder string }

func newLooker(root *os.Root) (*looker, error) { return &looker{root.Name()}, nil }

func (l *looker) close() error { return nil }

// stamp looks at a path with slashes, not following a link at its end.
func (l *looker) stamp(path string) (stamp, error) {
	return stampAt(filepath.Join(l.folder, filepath.FromSlash(path)))
}

// stampOfFile looks at an open file.
func stampOfFile(f *os.File) (stamp, error) {
	info, err := f.Stat()
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

// stampAt looks at a path anywhere.
func stampAt(path string) (stamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	return stampOf(info), nil
}

func stampOf(info os.FileInfo) stamp {
	s := stamp{size: info.Size(), mtime: info.ModTime().UnixNano()}
	switch {
	case info.Mode().IsRegular():
		s.mode = typeFile
	case info.IsDir():
		s.mode = typeFolder
	case info.Mode()&os.ModeSymlink != 0:
		s.mode = typeLink
	}
	return s
}
