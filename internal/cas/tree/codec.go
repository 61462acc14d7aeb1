package tree

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/postcard"
)

// ErrForm says that bytes are no tree object in canonical form.
var ErrForm = errors.New("tree: not a tree object in canonical form")

// decoding bounds what a hostile object can make the decoder take: about 100 bytes for each of MaxEntries.
var decoding = postcard.Options{MaxAlloc: MaxEntries * 128}

// Encode returns the object of a folder with these entries, given in any order. It refuses what Decode would.
func Encode(entries []Entry) ([]byte, error) {
	data, _, err := encode(entries)
	return data, err
}

func encode(entries []Entry) ([]byte, Totals, error) {
	if !slices.IsSortedFunc(entries, byName) {
		entries = slices.SortedFunc(slices.Values(entries), byName)
	}
	totals, err := check(entries)
	if err != nil {
		return nil, Totals{}, err
	}
	w := TreeV1{Version: Version, Entries: make([]EntryV1, len(entries))}
	for i := range entries {
		w.Entries[i] = toWire(&entries[i])
	}
	data, err := postcard.Marshal(&w)
	if err == nil && len(data) > MaxEncoded {
		err = fmt.Errorf("%d bytes, more than %d", len(data), MaxEncoded)
	}
	if err != nil {
		return nil, Totals{}, fmt.Errorf("%w: %w", ErrForm, err)
	}
	return data, totals, nil
}

// Decode returns the entries of a folder's object, sorted by name. It takes nothing but what Encode writes.
func Decode(data []byte) ([]Entry, error) {
	if len(data) > MaxEncoded {
		return nil, fmt.Errorf("%w: %d bytes, more than %d", ErrForm, len(data), MaxEncoded)
	}
	if len(data) > 0 && data[0] != Version {
		return nil, fmt.Errorf("%w: version %d, want %d", ErrForm, data[0], Version)
	}
	var w TreeV1
	if err := decoding.Unmarshal(data, &w); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	entries := make([]Entry, len(w.Entries))
	for i := range w.Entries {
		entries[i] = fromWire(&w.Entries[i])
	}
	if _, err := check(entries); err != nil {
		return nil, err
	}
	return entries, nil
}

func byName(a, b Entry) int { return cmp.Compare(a.Name, b.Name) }

// check is what makes a list of entries a folder: sorted, each name once, each entry in itself right, and all of them
// together within the bounds of a tree.
func check(entries []Entry) (Totals, error) {
	if len(entries) > MaxEntries {
		return Totals{}, fmt.Errorf("%w: %d entries in one folder, more than %d", ErrForm, len(entries), MaxEntries)
	}
	for i := range entries {
		e := &entries[i]
		if err := e.check(); err != nil {
			return Totals{}, err
		}
		if i > 0 && entries[i-1].Name >= e.Name {
			if entries[i-1].Name == e.Name {
				return Totals{}, &EntryError{e.Name, "stands there twice"}
			}
			return Totals{}, &EntryError{e.Name, "is not in the order of names"}
		}
	}
	t := TotalsOf(entries)
	switch {
	case t.Files > forge.MaxTreeFiles:
		return t, fmt.Errorf("tree: more than %d files", uint64(forge.MaxTreeFiles))
	case t.Bytes > forge.MaxTreeBytes:
		return t, fmt.Errorf("tree: more than %v of files", forge.Bytes(forge.MaxTreeBytes))
	case t.Depth > forge.MaxTreeDepth:
		return t, fmt.Errorf("tree: more than %d folders deep", forge.MaxTreeDepth)
	}
	return t, nil
}

// check judges an entry by itself.
func (e *Entry) check() error {
	if reason := nameFault(e.Name); reason != "" {
		return &EntryError{e.Name, reason}
	}
	plain := Entry{Name: e.Name, Kind: e.Kind}
	switch e.Kind {
	case File:
		if e.Ref.Digest.IsZero() || e.Ref.Bytes > uint64(forge.MaxTreeBytes) {
			return &EntryError{e.Name, "is a file without a digest, or larger than a whole tree may be"}
		}
		plain.Ref, plain.Executable = e.Ref, e.Executable
	case Folder:
		if reason := folderFault(e.Ref, e.Totals); reason != "" {
			return &EntryError{e.Name, reason}
		}
		plain.Ref, plain.Totals = e.Ref, e.Totals
	case Link:
		if reason := targetFault(e.Target); reason != "" {
			return &LinkError{Path: e.Name, Target: e.Target, Reason: reason}
		}
		plain.Target = e.Target
	default:
		return &EntryError{e.Name, fmt.Sprintf("is of no known kind (%d)", e.Kind)}
	}
	if *e != plain {
		return &EntryError{e.Name, "has what its kind has not"}
	}
	return nil
}

// emptyRef is the object of a folder without entries.
var emptyRef = digest.RefOf([]byte{Version, 0})

// folderFault says what is wrong with totals that no folder could have.
func folderFault(ref digest.Ref, t Totals) string {
	switch {
	case ref.Digest.IsZero() || ref.Bytes < emptyRef.Bytes || ref.Bytes > MaxEncoded:
		return "is a folder without a tree object of a size that one can have"
	case t.Hazards&^allHazards != 0:
		return "has hazards that are not known"
	case t.Files > forge.MaxTreeFiles || t.Bytes > forge.MaxTreeBytes || t.Depth > forge.MaxTreeDepth:
		return "has totals beyond what a tree may hold"
	case (ref == emptyRef) != (t.Depth == 0):
		return "has a depth that its object cannot have"
	case t.Depth == 0 && t != Totals{}, t.Depth > 0 && t.Files == 0:
		return "has totals that contradict each other"
	}
	return ""
}
