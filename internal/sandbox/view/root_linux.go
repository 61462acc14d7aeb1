package view

import (
	"errors"
	"os"
)

// Open opens the binds of a plan that must be handed over, in the plan's order, as trees of mounts that are attached nowhere.
// The launcher calls it with its own rights; the caller closes the files, each of which serves one Build.
func Open(p Plan) ([]*os.File, error) { return nil, errors.New("not yet") }

// Own returns this process's mount namespace.
func Own() (Namespace, error) { return Namespace{}, errors.New("not yet") }

// Root is a view that stands.
type Root struct{}

// Build makes the root and moves into it; the host's root is gone afterwards. handed are Open's files, in their order.
func Build(p Plan, handed []*os.File) (*Root, error) { return nil, ErrNotInside }

// Attach shows the attempt's folder, a mount attached nowhere, at WorkDir and its folder tmp at TempDir. It makes tmp and home
// in it, for steps, where they are missing. The caller closes folder.
func (r *Root) Attach(folder *os.File) error { return ErrNotInside }

// Seal makes the root read-only. Nothing can be attached afterwards.
func (r *Root) Seal() error { return ErrNotInside }
