package cas

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// TreeError says that an object is no tree, or that a tree is not what its name or its parent says.
type TreeError struct {
	Path string     // of the folder, "" for the root
	Ref  digest.Ref // its object
	Err  error
}

func (e *TreeError) Error() string {
	return fmt.Sprintf("the folder %q of the tree is wrong (object %v): %v", e.Path, e.Ref, e.Err)
}

func (e *TreeError) Unwrap() error { return e.Err }

// SkipFolder is returned by a visitor to leave out what is below a folder; its totals are then not checked.
var SkipFolder = errors.New("skip this folder") //nolint:errname // a word of control, as fs.SkipDir

// Walk calls visit for each entry of a tree, folders before what is in them and in the order of names. The path is the
// entry's, with slashes, from the root. It checks as it goes that every object is a tree in canonical form, that every
// folder holds what its totals say, and that no link leads out; the error is then a *TreeError. An error of visit ends
// the walk and is returned as it is. Hold back what a wrong tree must not cause until Walk has returned nil.
func Walk(ctx context.Context, src Source, root forge.TreeRef, visit func(path string, e tree.Entry) error) error {
	return errors.ErrUnsupported
}

// Fetch brings trees and all below them into dst, level by level, trees before files, each object once. It checks the
// trees' form and totals as Walk does; links are left to Walk. When it returns nil, dst had everything at some moment
// during the call: pin the objects, or hold what names them, so that they stay.
func Fetch(ctx context.Context, dst Store, src Source, roots ...forge.TreeRef) error {
	return errors.ErrUnsupported
}

// Copy gives dst those of refs that it lacks, from src, with a few objects at a time. A dst that is a CopierFrom or else
// a src that is a CopierTo does it itself. It ends at the first error; what arrived until then stays.
func Copy(ctx context.Context, dst Sink, src Source, refs []digest.Ref) error {
	return errors.ErrUnsupported
}

// Tiered is a store before another: it reads near, and fetches from far what near has not, or has damaged; then near has
// it again ("healed"). Objects are put near only, and missing are those that near has not. It gives no byte of a damaged
// object, not even before an error: large objects are read twice for that.
func Tiered(near Store, far Source) Store { panic("soon") }

// Only is a store of which just those objects may be had or put that allowed says; every other one is absent. Missing
// counts them as missing, Put refuses them with ErrNotFound.
func Only(allowed func(digest.Ref) bool, s Store) Store { panic("soon") }
