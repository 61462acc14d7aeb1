// Package tree is TreeV1, the frozen form of folders in the content store (ADR 0004): what an input or output looks like,
// down to the bytes whose digest names it.
//
// A tree object is one folder: its entries, sorted by the bytes of their names. A file has a digest, a size and one bit
// for executable; a folder the digest of its tree and totals of all below it; a link its target. Nothing else is kept: no
// owner, no time, no other permission, no device, no hard link. Equal folders have equal bytes on any machine.
//
//	TreeV1  = version (1) · list of entries
//	entry   = name · 0 file   (digest, bytes, executable)
//	               | 1 folder (digest, bytes of the tree object, totals)
//	               | 2 link   (target)
//	totals  = files · bytes · depth · hazards
//
// The decoder takes exactly what the encoder writes and refuses every other spelling, names that no path can hold, and
// links that lead out. What it cannot see from one folder alone (whether the totals of a folder below are true, and
// how far up a link may climb) Builder checks when a tree is made and cas.Walk when it is read.
//
// Pure: forms and their validation.
package tree

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of one folder. Those of a whole tree are forge.MaxTreeFiles, MaxTreeBytes and MaxTreeDepth.
const (
	MaxEntries = 1 << 18          // in one folder
	MaxName    = 255              // bytes: no more fit on a file system of Linux
	MaxTarget  = 4095             // bytes of a link's target, likewise
	MaxEncoded = 32 * 1024 * 1024 // bytes of a tree object
)

// Kind says what an entry is.
type Kind uint8

// The kinds.
const (
	File   Kind = 1
	Folder Kind = 2
	Link   Kind = 3
)

// Entry is one name in a folder. Fields that its kind does not have are zero.
type Entry struct {
	Name       string
	Kind       Kind
	Ref        digest.Ref // of a file's bytes, or of a folder's tree object
	Executable bool       // of a file
	Target     string     // of a link: relative, .. only at its front
	Totals     Totals     // of a folder
}

// Totals is what a folder holds, counted along every path: an object that stands in two places counts twice. A folder's
// entry has them so that limits can be checked before anything below it is fetched.
type Totals struct {
	Files   uint64      // files, links, and folders that are empty; so no tree is larger than Files × Depth
	Bytes   forge.Bytes // of all files
	Depth   uint16      // of the deepest path, in names: zero for an empty folder
	Hazards Hazards     // anywhere below
}

// Hazards says which platforms cannot hold a tree as it is.
type Hazards uint8

// The hazards. A bit that is not one of them is refused.
const (
	CaseConflict   Hazards = 1 << 0 // two names in a folder differ only by case
	NFCConflict    Hazards = 1 << 1 // two names in a folder are the same text, composed differently
	WindowsIllegal Hazards = 1 << 2 // a name that Windows reserves or cannot spell
)

const allHazards = CaseConflict | NFCConflict | WindowsIllegal

// Ref names a root by its object and totals.
func (t Totals) Ref(root digest.Ref) forge.TreeRef {
	return forge.TreeRef{Root: root, Files: t.Files, Bytes: t.Bytes, Depth: t.Depth}
}

// EntryError says which entry of a folder cannot be, and why.
type EntryError struct {
	Path   string // the name, or the path where more is known; clipped
	Reason string
}

func (e *EntryError) Error() string { return fmt.Sprintf("tree: %q %s", clip(e.Path), e.Reason) }

// LinkError says which link leads out of its tree, or is no relative path at all.
type LinkError struct {
	Path   string // the name, or the path where more is known
	Target string
	Reason string
}

func (e *LinkError) Error() string {
	return fmt.Sprintf("tree: link %q to %q %s", clip(e.Path), clip(e.Target), e.Reason)
}

// clip keeps an error short whatever a peer sent.
func clip(s string) string {
	const most = 300
	if len(s) > most {
		return s[:most] + "…"
	}
	return s
}
