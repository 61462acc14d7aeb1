package snapshot

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// maxNamed bounds the paths that an error or a list of warnings names.
const maxNamed = 20

// WarningKind says why something was left out.
type WarningKind string

// The kinds of warnings.
const (
	OutsideLink       WarningKind = "link-leads-out"        // or is absolute, or cannot be followed within the tree
	SpecialFile       WarningKind = "special-file"          // socket, FIFO or device
	NestedRepository  WarningKind = "nested-repository"     // one that is no submodule
	MissingSubmodule  WarningKind = "submodule-not-there"   // not checked out here
	SparseFiles       WarningKind = "sparse-checkout"       // tracked, and not wanted on disk
	RepositoryDropped WarningKind = "repository-not-copied" // .git in a plain folder
)

// Warning names something that is not in the tree.
type Warning struct {
	Kind WarningKind
	Path string // from the root, with slashes
	Text string // what and why, for people
}

func (w Warning) String() string { return fmt.Sprintf("%q: %s", w.Path, w.Text) }

// differs reports whether a fresh clone would have what was left out.
func (w Warning) differs() bool {
	return w.Kind == OutsideLink || w.Kind == MissingSubmodule || w.Kind == SparseFiles
}

// Warnings are at most maxNamed warnings of each capture.
type Warnings struct {
	Named []Warning
	More  int // that are not named
}

func (w *Warnings) add(more Warning) {
	if len(w.Named) < maxNamed {
		w.Named = append(w.Named, more)
	} else {
		w.More++
	}
}

// Problem names something that cannot be captured.
type Problem struct {
	Path   string // from the root, with slashes; "" for the whole
	Reason string
}

// RefusedError says why a source cannot be captured.
type RefusedError struct {
	Root     string
	Problems []Problem // at most maxNamed
	More     int       // that are not named
}

func (e *RefusedError) Error() string {
	var text strings.Builder
	fmt.Fprintf(&text, "the source %s cannot be captured", e.Root)
	for _, p := range e.Problems {
		if p.Path == "" {
			fmt.Fprintf(&text, "; %s", p.Reason)
		} else {
			fmt.Fprintf(&text, "; %q %s", p.Path, p.Reason)
		}
	}
	if e.More > 0 {
		fmt.Fprintf(&text, "; and %d more", e.More)
	}
	return text.String()
}

// ChangedError says that files changed again and again while they were captured.
type ChangedError struct{ Paths []string } // at most maxNamed

func (e *ChangedError) Error() string {
	quoted := make([]string, len(e.Paths))
	for i, p := range e.Paths {
		quoted[i] = fmt.Sprintf("%q", p)
	}
	return fmt.Sprintf("the source changes while it is captured (%s): stop what writes there, or have git ignore it",
		strings.Join(quoted, ", "))
}

// findings collects problems and changes from several goroutines.
type findings struct {
	mu      sync.Mutex
	refused RefusedError
	changed []string
}

func (f *findings) refuse(path, reason string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.refused.Problems) < maxNamed {
		f.refused.Problems = append(f.refused.Problems, Problem{path, reason})
	} else {
		f.refused.More++
	}
}

func (f *findings) change(path string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.changed) < maxNamed && !slices.Contains(f.changed, path) {
		f.changed = append(f.changed, path)
	}
}

// err is what was found, problems first.
func (f *findings) err(root string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case len(f.refused.Problems) > 0:
		slices.SortFunc(f.refused.Problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
		refused := f.refused
		refused.Root = root
		return &refused
	case len(f.changed) > 0:
		slices.Sort(f.changed)
		return &ChangedError{Paths: f.changed}
	}
	return nil
}
