package snapshot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// An index is what is known of a source: which folders and files it has, and what each held when it was last read.
type index struct {
	root string
	git  bool  // the folder is a repository's
	at   int64 // when the listing was begun; zero where there is none

	guards  []guard   // what else the listing depends on
	folders []folder  // those above before those below
	notes   []Warning // of the listing
	more    int       // notes beyond maxNamed

	untracked bool   // there are files that are not tracked
	judged    string // the commit for which dirty was found out
	dirty     bool   // tracked files differ from that commit

	clean cleanEntry // the repository that was made last

	loaded bool     // the listing is from an earlier capture
	moved  []string // what made the listing stale
}

// A guard is a file or folder outside of the listing with the stamp that it had.
type guard struct {
	path  string // absolute
	stamp stamp  // zero: nothing there
}

// A folder is one of the source, or one that is watched because a file of the source could come up in it.
type folder struct {
	path    string // from the root, with slashes; "" for the root
	stamp   stamp
	above   int // its parent's place among the folders; -1 for the root
	entries []entry
	ref     digest.Ref  // its tree object; zero where it has none, or not yet
	totals  tree.Totals // likewise
	changed bool        // the object is not known
}

// kind says what became of an entry.
type kind uint8

// The kinds, as they are written into an index.
const (
	unknown kind = 0
	file    kind = 1
	link    kind = 2
	leftOut kind = 3 // with a warning
)

// bit says where an executable bit comes from.
type bit uint8

// The sources of executable bits, as they are written into an index.
const (
	fromDisk bit = 0
	bitOff   bit = 1
	bitOn    bit = 2
)

// An entry is a file or link.
type entry struct {
	name  string
	kind  kind
	bit   bit
	exec  bool
	racy  bool // it may have changed without another stamp
	stamp stamp
	ref   digest.Ref  // of a file
	text  string      // a link's target, or why it was left out
	why   WarningKind // it was left out
}

// size is the number of entries.
func (x *index) size() (n uint64) {
	for i := range x.folders {
		n += uint64(len(x.folders[i].entries))
	}
	return n
}

// listed reports whether there is a listing that can be relied on, if nothing that it depends on has changed.
func (x *index) listed() bool { return x.at != 0 && foldersTell }

// warnings are those of the listing and of what was found at its paths.
func (x *index) warnings() Warnings {
	all := Warnings{Named: slices.Clone(x.notes), More: x.more}
	for i := range x.folders {
		for j := range x.folders[i].entries {
			if e := &x.folders[i].entries[j]; e.kind == leftOut {
				all.add(Warning{e.why, path.Join(x.folders[i].path, e.name), e.text})
			}
		}
	}
	return all
}

// lister makes a listing.
type lister struct {
	look     *looker
	dir      string
	max      uint64
	fresh    *index
	count    uint64
	findings findings
}

// list makes a new listing. What the old one knew of paths that are still there is kept.
func (t *taking) list(ctx context.Context) error {
	look, err := newLooker(t.root)
	if err != nil {
		return err
	}
	t.lists++
	l := &lister{look: look, dir: t.dir, max: t.options.MaxFiles}
	l.fresh = &index{root: t.dir, git: t.repo != nil, at: t.now().UnixNano(), clean: t.index.clean}
	if t.repo != nil {
		err = l.repository(ctx, t.repo, "", 0)
	} else {
		err = l.plain(ctx)
	}
	if err == nil {
		err = l.findings.err(t.dir)
	}
	if err = errors.Join(err, look.close()); err != nil {
		return err
	}
	l.fresh.arrange()
	l.fresh.inherit(t.index)
	t.index = l.fresh
	return nil
}

func (l *lister) note(w Warning) {
	if len(l.fresh.notes) < maxNamed {
		l.fresh.notes = append(l.fresh.notes, w)
	} else {
		l.fresh.more++
	}
}

// guard makes the listing depend on a path.
func (l *lister) guard(path string) error {
	s, err := stampAt(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	l.fresh.guards = append(l.fresh.guards, guard{path, s})
	return nil
}

// enter reads a folder's names. It returns nil for one that went away meanwhile, which its parent's stamp will show, and for
// one that cannot be read, which is a problem.
func (l *lister) enter(ctx context.Context, dir string) (*folder, []os.DirEntry, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, nil, err
	}
	s, err := l.look.stamp(dir)
	var names []os.DirEntry
	if err == nil && s.is(typeFolder) {
		names, err = os.ReadDir(filepath.Join(l.dir, filepath.FromSlash(dir)))
	}
	switch {
	case os.IsNotExist(err) || err == nil && !s.is(typeFolder):
		return nil, nil, nil
	case err != nil:
		l.findings.refuse(dir, reason(err))
		return nil, nil, nil
	case strings.Count(dir, "/") >= forge.MaxTreeDepth:
		return nil, nil, l.whole(fmt.Sprintf("folders are more than %d deep: %.80q…", forge.MaxTreeDepth, dir))
	}
	l.fresh.folders = append(l.fresh.folders, folder{path: dir, stamp: s, changed: true})
	return &l.fresh.folders[len(l.fresh.folders)-1], names, nil
}

// whole refuses the source as a whole.
func (l *lister) whole(reason string) error {
	l.findings.refuse("", reason)
	return l.findings.err(l.dir)
}

// take puts an entry into the folder that was entered last.
func (l *lister) take(f *folder, name string, b bit) error {
	if !utf8.ValidString(name) {
		l.findings.refuse(path.Join(f.path, name), "has a name that is not UTF-8, which no tree can hold: rename it")
		return nil
	}
	if l.count++; l.count > l.max {
		return l.whole(fmt.Sprintf("has more than %d files: %s", l.max, l.fresh.crowded()))
	}
	f.entries = append(f.entries, entry{name: name, bit: b})
	return nil
}

// crowded names the folder at the top that has most of the files so far.
func (x *index) crowded() string {
	counts := map[string]int{}
	most := ""
	for i := range x.folders {
		top, _, _ := strings.Cut(x.folders[i].path, "/")
		counts[top] += len(x.folders[i].entries)
		if counts[top] > counts[most] {
			most = top
		}
	}
	return fmt.Sprintf("%d of the first ones are below %q; have git ignore what is no source, or name a smaller folder",
		counts[most], "./"+most)
}

// reason is an error of the system without the path, which the problem names.
func reason(err error) string {
	var of *os.PathError
	if errors.As(err, &of) {
		err = of.Err
	}
	return "cannot be read: " + err.Error()
}

// plain lists all there is below the root.
func (l *lister) plain(ctx context.Context) error {
	for todo := []string{""}; len(todo) > 0; {
		dir := todo[0]
		todo = todo[1:]
		f, names, err := l.enter(ctx, dir)
		if err != nil {
			return err
		}
		if f == nil {
			continue
		}
		for _, name := range names {
			at := path.Join(dir, name.Name())
			switch {
			case name.Name() == ".git":
				l.note(Warning{RepositoryDropped, at, "the database of a git repository, which may hold credentials"})
			case name.IsDir() && !utf8.ValidString(name.Name()):
				l.findings.refuse(at, "has a name that is not UTF-8, which no tree can hold: rename it")
			case name.IsDir():
				todo = append(todo, at)
			default:
				if err := l.take(f, name.Name(), fromDisk); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// arrange puts folders above before those below, and entries in order.
func (x *index) arrange() {
	slices.SortFunc(x.folders, func(a, b folder) int { return cmp.Compare(a.path, b.path) })
	place := make(map[string]int, len(x.folders))
	for i := range x.folders {
		f := &x.folders[i]
		place[f.path] = i
		f.above = -1
		if f.path != "" {
			f.above = place[parent(f.path)]
		}
		slices.SortFunc(f.entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	}
}

// parent is the folder that a path stands in.
func parent(p string) string { return p[:max(0, strings.LastIndexByte(p, '/'))] }

// inherit takes over what an older listing knew of the same paths. Stamps decide later whether it still holds.
func (x *index) inherit(old *index) {
	place := make(map[string]*folder, len(old.folders))
	for i := range old.folders {
		place[old.folders[i].path] = &old.folders[i]
	}
	for i := range x.folders {
		from := place[x.folders[i].path]
		if from == nil {
			continue
		}
		for j := range x.folders[i].entries {
			e := &x.folders[i].entries[j]
			at, ok := slices.BinarySearchFunc(from.entries, e.name, func(e entry, name string) int { return cmp.Compare(e.name, name) })
			if ok && from.entries[at].bit == e.bit {
				*e = from.entries[at]
			}
		}
	}
}
