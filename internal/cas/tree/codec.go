package tree

import (
	"errors"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Encode returns the object of a folder with these entries, given in any order. It refuses what Decode would.
func Encode(entries []Entry) ([]byte, error) { return nil, errors.ErrUnsupported }

// Decode returns the entries of a folder's object, sorted by name. It takes nothing but what Encode writes.
func Decode(data []byte) ([]Entry, error) { return nil, errors.ErrUnsupported }

// TotalsOf counts a folder's entries and all below them. Entries that Encode or Decode passed are within bounds.
func TotalsOf(entries []Entry) Totals { return Totals{} }

// Builder makes the objects of a tree from paths. The zero value is an empty tree. One goroutine uses it.
type Builder struct{}

// Add puts an entry at a path, in any order; the folders above it come by themselves. The entry's Name is taken from the
// path. A folder with a Ref is a tree that exists already, with its Totals; nothing can be added below it. A folder
// without one is made, and may stay empty. The error is an *EntryError or *LinkError with the whole path.
func (b *Builder) Add(path string, e Entry) error { return errors.ErrUnsupported }

// Build gives every tree object to put, those below before those above, and returns the root. It may be called once.
func (b *Builder) Build(put func(ref digest.Ref, encoded []byte) error) (forge.TreeRef, Totals, error) {
	return forge.TreeRef{}, Totals{}, errors.ErrUnsupported
}
