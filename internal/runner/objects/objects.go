// Package objects moves what attempts read and what they leave between this machine and the daemon's store.
//
//	Tree      daemon ─▶ cache of objects ─▶ cache of trees ─▶ a folder that any number of attempts share
//	Outputs   files of an attempt ─▶ cache of objects ─▶ daemon
//
//	<dir>/cache   objects (cas/disk): a cache, so whatever it loses is fetched again
//	<dir>/trees   trees as folders (cas/treecache)
//
// Where the daemon's store is on this machine and may be read in place, there is no cache of objects between.
//
// It says what kind of failure an error is (07§54). Its functions start nothing that outlives them.
package objects

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/cas/treecache"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
)

// The folders.
const (
	cacheName = "cache"
	treesName = "trees"
)

// Limits bound what is kept on this machine. What attempts need now is not given up for others; what has no room beside it
// is refused.
type Limits struct {
	MaxBytes forge.Bytes   // of objects, and of trees as much again
	MinFree  forge.Bytes   // left free on the file system
	MaxAge   time.Duration // since a tree was used last
}

// DefaultLimits are those of an agent that was told nothing.
func DefaultLimits() Limits {
	return Limits{MaxBytes: 20 * forge.GiB, MinFree: forge.GiB, MaxAge: 14 * 24 * time.Hour}
}

// Config says where objects come from and go to.
type Config struct {
	Dir string // of this agent alone
	// Far is the daemon's store as an attempt may use it.
	Far func(of forge.AttemptContext) cas.Store
	// InPlace says that Far reads a disk of this machine. Where its stores are an Adder, outputs go there at once.
	InPlace bool
	Limits  Limits
	Log     *slog.Logger // nil: silent
}

// Adder is a store that names what it takes.
type Adder interface {
	Add(ctx context.Context, r io.Reader) (digest.Ref, error)
}

// Objects implements attempt.Objects. Its methods may be called by many at once. It is closed when no attempt is left.
type Objects struct {
	cfg   Config
	near  *disk.Store
	trees *treecache.Cache
}

// Open opens the caches, and makes them if they are not there.
func Open(cfg Config) (*Objects, error) {
	near, err := disk.Open(filepath.Join(cfg.Dir, cacheName), disk.Options{
		MaxBytes: cfg.Limits.MaxBytes, MinFree: cfg.Limits.MinFree, Evict: true, Log: cfg.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("cache of objects: %w", err)
	}
	trees, err := treecache.Open(filepath.Join(cfg.Dir, treesName), treecache.Options{
		MaxBytes: cfg.Limits.MaxBytes, MinFree: cfg.Limits.MinFree, MaxAge: cfg.Limits.MaxAge, Log: cfg.Log,
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("cache of trees: %w", err), near.Close())
	}
	return &Objects{cfg: cfg, near: near, trees: trees}, nil
}

// Close gives the caches back.
func (o *Objects) Close() error { return errors.Join(o.trees.Close(), o.near.Close()) }

// InUse counts what is kept because attempts need it now: objects of outputs, until the daemon has taken their result, and trees.
func (o *Objects) InUse() (objects, trees int) { return o.near.Pinned(), o.trees.Held() }

// Sweep gives up what is too old or too much. It may take seconds.
func (o *Objects) Sweep(ctx context.Context) error { return o.trees.Sweep(ctx) }

// Tree implements attempt.Objects.
func (o *Objects) Tree(ctx context.Context, of forge.AttemptContext, t forge.TreeRef) (string, func(), error) {
	far := o.cfg.Far(of)
	var src cas.Source = far
	if !o.cfg.InPlace {
		src = &fetched{near: o.near, far: far, tree: t}
	}
	made, err := o.trees.Acquire(ctx, t, src)
	if err != nil {
		return "", nil, &executor.SetupError{Class: inputClass(err), Err: fmt.Errorf("input %v: %w", t.Root, err)}
	}
	return made.Path(), made.Release, nil
}

// fetched is the objects of a tree, which are brought near all together when the first of them is wanted: a tree that is
// here as a folder wants none.
type fetched struct {
	near *disk.Store
	far  cas.Store
	tree forge.TreeRef

	once   sync.Once
	err    error
	tiered cas.Store
}

// Open implements cas.Source.
func (f *fetched) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	f.once.Do(func() {
		f.err = cas.Fetch(ctx, f.near, f.far, f.tree)
		f.tiered = cas.Tiered(f.near, f.far)
	})
	if f.err != nil {
		return nil, f.err
	}
	return f.tiered.Open(ctx, ref)
}

// inputClass says what kind of failure kept an input away.
func inputClass(err error) forge.Class {
	var (
		corrupt      *cas.CorruptError
		mismatch     *cas.MismatchError
		lies         *cas.TreeError
		incompatible *treecache.IncompatibleError
	)
	switch {
	case errors.As(err, &incompatible):
		return forge.PathIncompatible
	case errors.As(err, &corrupt), errors.As(err, &mismatch), errors.As(err, &lies):
		return forge.CorruptInput
	case full(err):
		return forge.DiskInsufficient
	default:
		return forge.InputFetch
	}
}

func full(err error) bool {
	return errors.Is(err, cas.ErrFull) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

var _ attempt.Objects = (*Objects)(nil)
