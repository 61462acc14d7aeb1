// Package snapshot captures the source of a run: a folder of this machine as a tree in a content store, with what git says
// of it.
//
// In a git repository the source is the whole repository around the folder, as a build of a fresh clone would have it, with
// what is not committed yet: what git tracks and is on disk, and what is neither tracked nor ignored. Contents, links and the
// executable bit are those on disk. Submodules are files like the others, and so is what is below them. What .gitignore
// and info/exclude name stays out; ignore rules of the user or the machine do not count, so that the same source is the
// same tree everywhere. Elsewhere the source is the folder, all of it, within limits.
//
// Never captured are .git in any folder, repositories that stand in another without being a submodule, empty folders of a
// repository, sockets, FIFOs, devices, and links that lead out of the source or say so (absolute ones): in a job they would
// name something else or nothing. A Warning names each. Refused, with an error that names them, are names that are not UTF-8,
// files that cannot be read, and more files or bytes than the limits.
//
// Every file is captured whole: one that changes while it is read is read again, and named in an error if it does not stop.
// The source as a whole is not frozen; files that are written together should be written before.
//
//	list     which paths belong to it      git, or the folder itself    kept while no folder and no ignore rule changed
//	refresh  stamps, then hash what is new                              kept while size, times, inode and mode are the same
//	build    folders to tree objects       bottom up                    kept while nothing below changed
//	deliver  objects that the sink lacks   files, then folders          each read again, and verified
//
// What is kept stands in an index, a file beside the caller's other state. An index that is damaged, of another version or of
// another folder is no index. It is a cache: without it the result is the same, later.
//
// A stamp younger than a file system's coarsest clock could hide a second change, so it is not relied on (as git does with
// racily clean entries). The clock is this machine's: a file server whose clock is more than two seconds behind it can hide a
// change of the same size that comes right after a capture.
//
// Take owns the goroutines that it starts and has joined them when it returns. Nothing is written into the source.
package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

// Limits where the options name none.
const (
	DefaultMaxFiles = 500_000
	DefaultMaxBytes = 16 * forge.GiB
)

// maxTries bounds how often a source that changes meanwhile is captured again.
const maxTries = 5

// Options say what to capture.
type Options struct {
	Dir      string      // the folder, or one within the repository
	Index    string      // the index's file, which need not exist; "" keeps nothing
	Git      bool        // also the repository of what is checked out
	MaxFiles uint64      // files and links; DefaultMaxFiles if zero
	MaxBytes forge.Bytes // of all files, and of those of the repository; DefaultMaxBytes if zero
	// Progress counts while it is captured; nil counts nothing.
	Progress *Progress
}

// Snapshot is a source as it was captured.
type Snapshot struct {
	Root       string         // the folder that was captured, absolute
	Within     string         // where Options.Dir stands below it, with slashes; "" for itself
	Tree       forge.TreeRef  // everything
	Totals     tree.Totals    // of Tree, with its hazards
	Repository *forge.TreeRef // what belongs into .git beside Tree; nil unless asked for
	Facts      *Facts         // nil outside of repositories
	Warnings   Warnings       // what was left out
}

// Facts is what git says of a source.
type Facts struct {
	git.Head
	Dirty bool // the tree is another than the commit's
}

// TreeHolder is a sink that knows whole trees: it answers whether it has one with all below it, and keeps it for the run
// that follows. Take then asks nothing about single objects.
type TreeHolder interface {
	HasTree(ctx context.Context, root forge.TreeRef) (bool, error)
}

// Progress is how far a capture is. What is captured again, because it changed meanwhile, counts again.
type Progress struct {
	Looked atomic.Uint64 // files, links and others whose stamps were looked at
	Read   atomic.Uint64 // bytes of files that were read because they are new or changed
	Sent   atomic.Uint64 // files whose contents the sink lacked and got, or is getting
	Bytes  atomic.Uint64 // of those, as far as they were read for it
}

// Take captures a source into sink. When it returns nil, sink had all of it at some moment during the call.
//
// Errors that a caller may test for: *RefusedError, *ChangedError, git.ErrNoCommit and git.ErrNone (where the repository was
// asked for), git.ErrBare, *git.Error, and those of the sink.
func Take(ctx context.Context, o Options, sink cas.Sink) (Snapshot, error) {
	snap, _, err := takeAt(ctx, o, sink, time.Now)
	return snap, err
}

// takeAt is Take by another clock, and tells what had to be done.
func takeAt(ctx context.Context, o Options, sink cas.Sink, now func() time.Time) (Snapshot, effort, error) {
	t, err := open(ctx, o, sink)
	if err != nil {
		return Snapshot{}, effort{}, err
	}
	t.now = now
	snap, err := t.take(ctx)
	return snap, t.effort, errors.Join(err, t.close())
}

// effort is what a capture had to do.
type effort struct {
	read   int64 // files and links
	lists  int   // listings
	cleans int   // repositories
}

// taking is one capture under way.
type taking struct {
	options Options
	sink    cas.Sink
	now     func() time.Time
	root    *os.Root
	dir     string    // of root
	repo    *git.Repo // nil for a plain folder
	index   *index    // what is known, from before or from this capture
	stale   bool      // the index's file says something else
	effort
}

func open(ctx context.Context, o Options, sink cas.Sink) (*taking, error) {
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Progress == nil {
		o.Progress = &Progress{}
	}
	t := &taking{options: o, sink: sink}
	if err := t.find(ctx); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(t.dir)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.root = root
	t.index = loadIndex(o.Index, t.dir, t.repo != nil)
	return t, nil
}

// find decides which folder is captured.
func (t *taking) find(ctx context.Context) error {
	dir, err := filepath.Abs(t.options.Dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return errors.Join(err, fmt.Errorf("%s is no folder", dir))
	}
	t.options.Dir, t.dir = dir, dir
	top, err := git.Find(dir)
	if errors.Is(err, git.ErrNone) {
		if t.options.Git {
			return fmt.Errorf("the source asks for its git repository: %w", err)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if t.repo, err = git.Open(ctx, top); err != nil {
		return err
	}
	t.dir = t.repo.Top
	return nil
}

func (t *taking) close() error {
	var errs []error
	if t.root != nil {
		errs = append(errs, t.root.Close())
	}
	if t.repo != nil {
		errs = append(errs, t.repo.Close())
	}
	return errors.Join(errs...)
}

// take captures until nothing changes meanwhile.
func (t *taking) take(ctx context.Context) (Snapshot, error) {
	var changed *ChangedError
	for range maxTries {
		snap, err := t.once(ctx)
		if errors.As(err, &changed) && context.Cause(ctx) == nil {
			continue
		}
		if err != nil {
			return Snapshot{}, err
		}
		t.save()
		return snap, nil
	}
	return Snapshot{}, changed
}

// once captures what is there. The error is a *ChangedError where that is worth another try.
func (t *taking) once(ctx context.Context) (snap Snapshot, err error) {
	before, err := t.head(ctx)
	if err != nil {
		return snap, err
	}
	same, err := t.update(ctx)
	if err != nil {
		return snap, err
	}
	snap.Root, snap.Warnings = t.dir, t.index.warnings()
	if snap.Within, err = filepath.Rel(t.dir, t.options.Dir); err != nil || snap.Within == "." {
		snap.Within = ""
	}
	snap.Within = filepath.ToSlash(snap.Within)
	var built bool
	if snap.Tree, snap.Totals, built, err = t.index.build(); err != nil {
		return snap, err
	}
	t.stale = t.stale || built
	if err = t.deliver(ctx, snap.Tree); err != nil || t.repo == nil {
		return snap, err
	}
	if snap.Facts, err = t.facts(ctx, before, same && !built); err != nil {
		return snap, err
	}
	if t.options.Git {
		if snap.Repository, err = t.repository(ctx, before.SHA); err != nil {
			return snap, err
		}
	}
	return snap, t.checkHead(ctx, before.SHA)
}

func (t *taking) head(ctx context.Context) (git.Head, error) {
	if t.repo == nil {
		return git.Head{}, nil
	}
	return t.repo.Head(ctx)
}

// checkHead refuses a capture during which another commit was checked out.
func (t *taking) checkHead(ctx context.Context, sha string) error {
	now, err := t.repo.SHA(ctx)
	if err == nil && now != sha {
		err = &ChangedError{Paths: []string{".git/HEAD"}}
	}
	return err
}

// facts completes what git says by whether the tree is that of the commit. Where nothing changed, neither has that.
func (t *taking) facts(ctx context.Context, head git.Head, same bool) (*Facts, error) {
	if !same || t.index.judged != head.SHA || head.SHA == "" {
		dirty, err := t.repo.Dirty(ctx)
		if err != nil {
			return nil, err
		}
		t.index.judged, t.index.dirty, t.stale = head.SHA, dirty, true
	}
	dirty := t.index.dirty || t.index.untracked || slices.ContainsFunc(t.index.notes, Warning.differs)
	return &Facts{Head: head, Dirty: dirty}, nil
}

// update lists the source where that is needed, and brings everything up to date. It reports whether all is as it was.
func (t *taking) update(ctx context.Context) (same bool, err error) {
	if t.index.listed() {
		switch fresh, err := t.refresh(ctx); {
		case err != nil:
			return false, err
		case fresh != staleList:
			t.stale = t.stale || fresh == someNew
			return fresh == allSame, nil
		}
	}
	t.stale = true
	if err := t.list(ctx); err != nil {
		return false, err
	}
	fresh, err := t.refresh(ctx)
	if err == nil && fresh == staleList {
		err = &ChangedError{Paths: t.index.moved}
	}
	return false, err
}

// save writes the index where it says something new. Where it cannot be written, the next snapshot takes longer.
func (t *taking) save() {
	if t.options.Index == "" || !t.stale {
		return
	}
	_ = t.index.save(t.options.Index)
}
