package view

import (
	"os"
	"path/filepath"
	"strings"
)

// Kind is what a path names.
type Kind uint8

// The kinds. Devices, sockets and the like count as files.
const (
	Absent   Kind = 0
	IsFolder Kind = 1
	IsFile   Kind = 2
	IsLink   Kind = 3
)

// Entry is what a host has at a path.
type Entry struct {
	Kind   Kind
	Target string // of a link
	Open   bool   // every id can reach and read it
}

// Host is what New asks of a machine.
type Host interface {
	Look(path string) Entry           // the path itself, links followed on the way but not at its end
	Real(path string) (string, Entry) // the path with every link followed; Absent where that leads nowhere
	Glob(pattern string) []string     // sorted
	Read(path string, max int) []byte // at most max bytes; nil where there is no such file
}

// Machine is this machine as a Host.
func Machine() Host { return machine{} }

type machine struct{}

func (machine) Look(path string) Entry {
	info, err := os.Lstat(path)
	if err != nil {
		return Entry{}
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(path)
		if err != nil {
			return Entry{}
		}
		return Entry{Kind: IsLink, Target: target}
	}
	return Entry{Kind: kindOf(info), Open: open(path, info)}
}

func (m machine) Real(path string) (string, Entry) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path, Entry{}
	}
	return real, m.Look(real)
}

func (machine) Glob(pattern string) []string {
	found, err := filepath.Glob(pattern)
	if err != nil {
		return nil // the patterns are ours and well formed
	}
	return found
}

func (machine) Read(path string, max int) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	content := make([]byte, max)
	n, err := f.Read(content)
	if err != nil {
		return nil
	}
	return content[:n]
}

func kindOf(info os.FileInfo) Kind {
	if info.IsDir() {
		return IsFolder
	}
	return IsFile
}

// open reports whether others may read what is at a path and pass through every folder above it.
func open(path string, info os.FileInfo) bool {
	need := os.FileMode(0o004)
	if info.IsDir() {
		need = 0o005
	}
	if info.Mode().Perm()&need != need {
		return false
	}
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		above, err := os.Stat(dir)
		if err != nil || above.Mode().Perm()&0o001 == 0 {
			return false
		}
		if dir == "/" || dir == "." {
			return true
		}
	}
}

// below returns the part of path that comes after dir, beginning with a slash or empty, and whether path is dir or beneath it.
func below(path, dir string) (string, bool) {
	if path == dir {
		return "", true
	}
	if dir == "/" {
		return path, true
	}
	if rest, ok := strings.CutPrefix(path, dir+"/"); ok {
		return "/" + rest, true
	}
	return "", false
}
