// Package objects is the daemon's content store: one folder of objects for all projects, and rows that say which project
// holds which of them.
//
//	Project(name)   what a project holds: the API, the planner, an agent in this process
//	Attempt(of)     what one attempt may have and give: the Scope behind its streams
//	CheckTree       that a tree is complete and true, before a run may name it
//	Deliver         that what a completion names is complete, before it is asked for
//	Watch           says in time that the disk is filling up
//
// The folder knows digests and no owners; nobody reaches it but through rows. Knowing a digest gives nothing: a project that
// wants to hold an object which another one has sends all of its bytes. An attempt may read what its specification's
// inputs name, all below, and what it has uploaded itself; whether anything else exists it cannot find out, neither from
// an answer nor from the time that it takes.
//
// Within one project, what is there need not be sent again, so an attempt learns which of the objects that it can name its
// project holds.
//
// Nothing is deleted here. A row is committed after its object is durable, so what a row says is there, unless a disk has
// damaged it: then reading finds out, the object is missing from then on, and whoever has it may send it again.
//
// The package has no goroutine of its own but for the time of a call; Watch is its caller's.
package objects

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Options say how the store is kept. Zero values stand for defaults.
type Options struct {
	MaxBytes forge.Bytes // of all objects; 0: no bound but the disk
	MinFree  forge.Bytes // left free on the file system, for the database and the logs
	Closures int         // bytes of memory for what lies below which tree
	Log      *slog.Logger
}

// Defaults of Options.
const (
	DefaultMinFree  = 512 * forge.MiB
	defaultClosures = 64 << 20
)

// ownersDir has a file for each object that arrives in pieces, with the name of the project whose pieces these are.
const ownersDir = "owners"

// Objects is the store. All methods may be called by many at once. Close it.
type Objects struct {
	disk     *disk.Store
	rows     *store.Store
	dir      string
	minFree  forge.Bytes
	log      *slog.Logger
	known    known
	closures *closures
	turns    turns

	mu       sync.Mutex
	attempts map[forge.AttemptID]*Scope
}

// Open opens the store in a folder, which is made if it is not there. rows stays its owner's.
func Open(dir string, o Options, rows *store.Store) (*Objects, error) {
	if o.MinFree == 0 {
		o.MinFree = DefaultMinFree
	}
	if o.Closures == 0 {
		o.Closures = defaultClosures
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	d, err := disk.Open(dir, disk.Options{MaxBytes: o.MaxBytes, MinFree: o.MinFree, Durable: true, Log: o.Log})
	if err != nil {
		return nil, fmt.Errorf("open the store of objects: %w", err)
	}
	if err := os.MkdirAll(filepath.Join(dir, ownersDir), 0o700); err != nil {
		return nil, errors.Join(fmt.Errorf("open the store of objects: %w", err), d.Close())
	}
	return &Objects{
		disk: d, rows: rows, dir: dir, minFree: o.MinFree, log: o.Log,
		closures: newClosures(o.Closures), attempts: map[forge.AttemptID]*Scope{},
	}, nil
}

// Close gives the folder back. Calls that are under way must have returned.
func (o *Objects) Close() error { return o.disk.Close() }

// MissingError says that objects are not there which a tree or a completion rests on. Sending them mends it.
type MissingError struct {
	Some  []digest.Ref // the first few
	Count int          // of all
}

// someMissing is how many objects a MissingError names.
const someMissing = 16

func missingError(refs []digest.Ref) error {
	return &MissingError{Some: refs[:min(len(refs), someMissing)], Count: len(refs)}
}

func (e *MissingError) Error() string {
	if e.Count == 1 {
		return fmt.Sprintf("object %v is not there: upload it first", e.Some[0])
	}
	return fmt.Sprintf("%d objects are not there, the first is %v: upload them first", e.Count, e.Some[0])
}

// Unwrap says which kind of error it is.
func (e *MissingError) Unwrap() error { return cas.ErrNotFound }

// held tells of each object whether a project holds it, by rows alone. What was not touched for long is touched.
func (o *Objects) held(ctx context.Context, project forge.ProjectName, refs []digest.Ref) ([]bool, error) {
	held := make([]bool, len(refs))
	for i, ref := range refs {
		held[i] = o.known.has(project, ref)
	}
	var ask []digest.Ref
	var places []int // of those in refs
	for i, ref := range refs {
		if !held[i] {
			ask, places = append(ask, ref), append(places, i)
		}
		if len(ask) == store.MaxHeld || i == len(refs)-1 && len(ask) > 0 {
			if err := o.ask(ctx, project, ask, func(i int) { held[places[i]] = true }); err != nil {
				return nil, err
			}
			ask, places = ask[:0], places[:0]
		}
	}
	return held, nil
}

// ask reads rows, and touches the old ones. It calls held with the place of each that is held.
func (o *Objects) ask(ctx context.Context, project forge.ProjectName, refs []digest.Ref, held func(int)) error {
	var times []forge.WallTime
	err := o.rows.View(ctx, func(v *store.View) (err error) {
		times, err = v.Held(project, refs)
		return err
	})
	if err != nil {
		return fmt.Errorf("read which objects %s holds: %w", project, err)
	}
	var old []digest.Ref
	now := wallNow()
	for i, at := range times {
		if at == 0 {
			continue
		}
		held(i)
		if at < now-forge.WallTime(store.TouchAfter.Milliseconds()) {
			old = append(old, refs[i])
		} else {
			o.known.add(project, refs[i])
		}
	}
	return o.hold(ctx, project, old)
}

// hold makes a project hold objects that are durable, or touches them.
func (o *Objects) hold(ctx context.Context, project forge.ProjectName, refs []digest.Ref) error {
	if len(refs) > store.MaxHeld { // in the order of their rows each transaction writes a few pages, else as many as it has rows
		refs = slices.Clone(refs)
		slices.SortFunc(refs, compareRefs)
	}
	for len(refs) > 0 {
		batch := refs[:min(len(refs), store.MaxHeld)]
		if err := o.rows.Update(ctx, store.ClassRest, func(tx *store.Tx) error { return tx.Hold(project, batch) }); err != nil {
			return fmt.Errorf("write which objects %s holds: %w", project, full(err))
		}
		for _, ref := range batch {
			o.known.add(project, ref)
		}
		refs = refs[len(batch):]
	}
	return nil
}

// full makes a full database the full store that it is.
func full(err error) error {
	if errors.Is(err, store.ErrFull) {
		return fmt.Errorf("%w: %w", cas.ErrFull, err)
	}
	return err
}
