package tree

import (
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Version is the first byte of every tree object.
const Version = 1

// TreeV1 is the object of a folder. It and what it consists of are frozen: another field is TreeV2.
type TreeV1 struct {
	Version uint8
	Entries []EntryV1 `postcard:"max=262144"`
}

// EntryV1 is one name in a folder.
type EntryV1 struct {
	Name string `postcard:"max=255"`
	Node NodeV1
}

// NodeV1 is what stands under a name.
type NodeV1 struct {
	File   *FileV1   `postcard:"=0"`
	Folder *FolderV1 `postcard:"=1"`
	Link   *LinkV1   `postcard:"=2"`
}

// FileV1 is a file.
type FileV1 struct {
	Digest     [digest.Size]byte
	Bytes      uint64
	Executable bool
}

// FolderV1 is a folder: its own object, and the totals of what that holds.
type FolderV1 struct {
	Digest    [digest.Size]byte
	TreeBytes uint64 // of the object
	Files     uint64
	Bytes     uint64
	Depth     uint16
	Hazards   uint8
}

// LinkV1 is a symbolic link.
type LinkV1 struct {
	Target string `postcard:"max=4095"`
}

func toWire(e *Entry) EntryV1 {
	w := EntryV1{Name: e.Name}
	switch e.Kind {
	case File:
		w.Node.File = &FileV1{Digest: e.Ref.Digest, Bytes: e.Ref.Bytes, Executable: e.Executable}
	case Folder:
		w.Node.Folder = &FolderV1{
			Digest: e.Ref.Digest, TreeBytes: e.Ref.Bytes, Files: e.Totals.Files, Bytes: uint64(e.Totals.Bytes),
			Depth: e.Totals.Depth, Hazards: uint8(e.Totals.Hazards),
		}
	case Link:
		w.Node.Link = &LinkV1{Target: e.Target}
	}
	return w
}

func fromWire(w *EntryV1) Entry {
	switch n := w.Node; {
	case n.File != nil:
		return Entry{
			Name: w.Name, Kind: File, Ref: digest.Ref{Digest: n.File.Digest, Bytes: n.File.Bytes},
			Executable: n.File.Executable,
		}
	case n.Folder != nil:
		return Entry{
			Name: w.Name, Kind: Folder, Ref: digest.Ref{Digest: n.Folder.Digest, Bytes: n.Folder.TreeBytes},
			Totals: Totals{
				Files: n.Folder.Files, Bytes: forge.Bytes(n.Folder.Bytes), Depth: n.Folder.Depth,
				Hazards: Hazards(n.Folder.Hazards),
			},
		}
	default:
		return Entry{Name: w.Name, Kind: Link, Target: n.Link.Target}
	}
}
