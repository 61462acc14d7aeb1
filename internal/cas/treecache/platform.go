package treecache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sort"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// hazards are those that a file system cannot hold.
type hazards = tree.Hazards

// IncompatibleError says that this platform cannot hold a name of a tree, or not beside another one. Nothing was written.
type IncompatibleError struct {
	Tree    forge.TreeRef
	Path    string       // of the first such name
	Hazards tree.Hazards // those of the tree that matter here
}

func (e *IncompatibleError) Error() string {
	return fmt.Sprintf("%q cannot be written on this machine (%v); rename it, or let the job run elsewhere", e.Path, e.Hazards)
}

// compatible refuses a tree whose names this file system cannot hold, by its root alone.
func compatible(ctx context.Context, src cas.Source, ref forge.TreeRef, unable hazards) error {
	if unable == 0 {
		return nil
	}
	entries, err := readTree(ctx, src, ref.Root)
	if err != nil {
		return err
	}
	bad := tree.TotalsOf(entries).Hazards & unable
	if bad == 0 {
		return nil
	}
	at, err := offender(ctx, src, entries, bad)
	if err != nil {
		return err
	}
	return &IncompatibleError{Tree: ref, Path: at, Hazards: bad}
}

// offender finds the first name that has one of the hazards. Where a folder's totals lie, the folder is named.
func offender(ctx context.Context, src cas.Source, entries []tree.Entry, bad hazards) (string, error) {
	at := ""
	for {
		i := sort.Search(len(entries), func(i int) bool { return tree.TotalsOf(entries[:i+1]).Hazards&bad != 0 })
		if i == len(entries) {
			return at, nil
		}
		e := entries[i]
		at = path.Join(at, e.Name)
		if e.Kind != tree.Folder || e.Totals.Hazards&bad == 0 {
			return at, nil
		}
		var err error
		if entries, err = readTree(ctx, src, e.Ref); err != nil {
			return "", err
		}
	}
}

// readTree reads a folder's object.
func readTree(ctx context.Context, src cas.Source, ref digest.Ref) ([]tree.Entry, error) {
	data, err := cas.ReadAll(ctx, src, ref, tree.MaxEncoded)
	if err != nil {
		return nil, err
	}
	entries, err := tree.Decode(data)
	if err != nil {
		return nil, &cas.TreeError{Ref: ref, Err: err}
	}
	return entries, nil
}

// probePrefix begins the names that probe makes.
const probePrefix = ".probe-"

// The same name twice, spelled so that only some file systems take it for one.
const (
	probeName     = probePrefix + "\u00e9" // composed
	probeCase     = ".PROBE-\u00e9"
	probeComposed = probePrefix + "e\u0301"
)

// probe tries which names a folder's file system takes for the same, rather than to go by the system's name: both kinds
// are found on each.
func probe(in *os.Root) (unable hazards, err error) {
	if err := in.WriteFile(probeName, nil, 0o600); err != nil {
		return 0, err
	}
	for _, p := range []struct {
		name   string
		hazard hazards
	}{{probeCase, tree.CaseConflict}, {probeComposed, tree.NFCConflict}} {
		switch _, err := in.Lstat(p.name); {
		case err == nil:
			unable |= p.hazard
		case !errors.Is(err, fs.ErrNotExist):
			return 0, errors.Join(err, in.Remove(probeName))
		}
	}
	return unable | platformHazards, in.Remove(probeName)
}
