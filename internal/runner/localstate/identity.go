package localstate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// identity is what the file of that name says.
type identity struct {
	folder forge.StateFolderID
	bound  fingerprint
	starts uint64
}

// fingerprint is what a copy of a folder does not have in common with it.
type fingerprint struct {
	inode uint64
	birth int64  // nanoseconds since 1970; 0 where the file system does not know
	where uint64 // without a birth time: the id of the file system
}

// identityV1 is the file. One file holds all of it, so that id and counter are never of two minds.
type identityV1 struct {
	Folder [16]byte
	Inode  uint64
	Birth  int64
	Where  uint64
	Starts uint64
}

// errCopied says why the journal of a copied folder is not looked at.
var errCopied = errors.New("it is of another state folder: this one is new, was copied, or has lost its identity")

// start makes this process the next one on the folder, or the first one if the folder is new, a copy, or its identity
// cannot be read.
func (f *Folder) start() error {
	here, err := fingerprintOf(f.path)
	if err != nil {
		return fmt.Errorf("identify state folder: %w", err)
	}
	was, err := f.readIdentity()
	if err != nil {
		return err
	}
	if was.folder.IsZero() || was.bound != here {
		f.identity = identity{folder: ident.New[forge.StateFolderID](), bound: here}
		f.disown()
	} else {
		f.identity = was
	}
	f.identity.starts++
	return f.writeIdentity()
}

// readIdentity returns the zero identity where there is none to be believed.
func (f *Folder) readIdentity() (identity, error) {
	b, err := readBounded(f.in(identityName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return identity{}, nil
	case errors.Is(err, errTooLarge):
		f.quarantine(f.in(identityName), err)
		return identity{}, nil
	case err != nil:
		return identity{}, fmt.Errorf("read the state folder's identity: %w", err)
	}
	var w identityV1
	if err := open1(magicIdentity, b, &w); err != nil {
		f.quarantine(f.in(identityName), err)
		return identity{}, nil
	}
	return identity{
		folder: forge.MakeID[forge.StateFolderID](w.Folder), bound: fingerprint{w.Inode, w.Birth, w.Where}, starts: w.Starts,
	}, nil
}

func (f *Folder) writeIdentity() error {
	i := f.identity
	b, err := seal1(magicIdentity, &identityV1{
		Folder: i.folder.ULID, Inode: i.bound.inode, Birth: i.bound.birth, Where: i.bound.where, Starts: i.starts,
	})
	if err != nil {
		return fmt.Errorf("write the state folder's identity: %w", err)
	}
	if err := f.writeWhole(f.path, identityName, b); err != nil {
		return fmt.Errorf("write the state folder's identity: %w", err)
	}
	return nil
}

// disown sets a journal aside that belongs to another folder: its attempts are not ours to report.
func (f *Folder) disown() {
	entries, err := os.ReadDir(f.in(journalName))
	if err != nil {
		return // Load reports it
	}
	for _, e := range entries {
		f.quarantine(f.in(journalName, e.Name()), errCopied)
	}
}
