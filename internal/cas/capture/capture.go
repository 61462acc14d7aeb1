package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Sink takes what is captured. Both methods are called from several goroutines at once. What a sink was given it keeps until
// its owner has delivered the output, or given it up.
type Sink interface {
	// Add stores the bytes of a file, whose name nobody knows before they are read.
	Add(ctx context.Context, r io.Reader) (digest.Ref, error)
	// Put stores the bytes of a tree, all that it names before it.
	Put(ctx context.Context, ref digest.Ref, r io.Reader) error
}

// Limits bound what Take does, besides what the output itself says. Zero means the default.
type Limits struct {
	Readers int    // files that are open and read at once, 16
	Entries uint64 // that are looked at, 10 million: a job may leave many that no pattern takes
	Folders uint64 // that are kept, a million: the output's MaxFiles does not count them
}

const (
	defaultReaders = 16
	defaultEntries = 10_000_000
	defaultFolders = 1_000_000
)

// Result is what was captured.
type Result struct {
	Tree     forge.TreeRef // begins at the base, also where only one file was taken; zero if there is nothing to keep
	Totals   tree.Totals   // of that tree
	Warnings []string      // for people: patterns that have matched nothing, names that not every platform can hold
}

// Take captures one output from the folder that the job knew as forge.WorkRoot. No process of the job is alive any more; should
// something else write there all the same, then a file is refused or taken as it was at one time, and nothing outside is
// read.
//
// The error is an *Error, or the cause with which ctx ended. An output without a file or link is an error only where it is
// required (forge.OutputMissing); else it is a warning, and if there is no folder either, the result names no tree.
func Take(ctx context.Context, root *os.Root, out forge.Output, sink Sink, limits Limits) (Result, error) {
	patterns, err := Compile(out)
	if err != nil {
		return Result{}, &Error{Class: forge.OutputRefused, Output: out.Name, Err: err}
	}
	w := newWalk(ctx, out, patterns, sink, limits)
	base, err := w.descend(root, out.Base)
	switch {
	case err != nil:
		return Result{}, err
	case base == nil:
		return w.nothing(fmt.Sprintf("there is no folder %s/%s", forge.WorkRoot, out.Base))
	}
	err = w.run(base)
	if err := errors.Join(err, base.Close()); err != nil {
		return Result{}, w.failure(err)
	}
	return w.result()
}

// descend opens the base, name by name. It returns nil if there is no such folder.
func (w *walk) descend(root *os.Root, base string) (*os.Root, error) {
	at, err := root.OpenRoot(".")
	if err != nil {
		return nil, w.failure(err)
	}
	for name := range strings.SplitSeq(base, "/") {
		info, err := at.Lstat(name)
		var next *os.Root
		if err == nil && info.IsDir() {
			next, err = openFolder(at, info)
		}
		err = errors.Join(err, at.Close())
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, nil
		case err != nil && next != nil:
			return nil, errors.Join(w.failure(err), next.Close())
		case err != nil:
			return nil, w.unreadable(base, err)
		case next == nil && info.Mode()&fs.ModeSymlink != 0:
			return nil, w.refusal(base, "leads through a link; the base of an output must be a folder of its own")
		case next == nil:
			return nil, nil
		}
		at = next
	}
	return at, nil
}

// nothing ends a capture that has found no file.
func (w *walk) nothing(why string) (Result, error) {
	if w.out.Required {
		return Result{}, &Error{
			Class: forge.OutputMissing, Output: w.out.Name,
			Err: fmt.Errorf("it is required, and %s; the patterns are %s", why, quoted(w.out.Patterns)),
		}
	}
	return Result{Warnings: []string{fmt.Sprintf("output %s is empty: %s; the patterns are %s", w.out.Name, why, quoted(w.out.Patterns))}}, nil
}

// result ends a capture that has come to its end.
func (w *walk) result() (Result, error) {
	if len(w.refused.first) > 0 {
		return Result{}, w.refused.err(w.out.Name)
	}
	totals := w.root.Totals
	switch {
	case w.files == 0 && (w.out.Required || w.root.Ref.IsZero()):
		return w.nothing(fmt.Sprintf("no file below %s/%s is taken", forge.WorkRoot, w.out.Base))
	case totals.Files > uint64(w.out.MaxFiles): // of which some are empty folders
		return Result{}, w.tooLarge("", "it has %d files and empty folders, and more than %d are not allowed", totals.Files, w.out.MaxFiles)
	}
	r := Result{Totals: totals, Tree: totals.Ref(w.root.Ref)}
	for i, found := range w.found {
		if !found && w.patterns.rules[i].takes {
			r.Warnings = append(r.Warnings, fmt.Sprintf("output %s: nothing matches %q below %s/%s",
				w.out.Name, w.patterns.rules[i].text, forge.WorkRoot, w.out.Base))
		}
	}
	if totals.Hazards != 0 {
		r.Warnings = append(r.Warnings, fmt.Sprintf("output %s has names that not every system can hold: such as differ by case only, or Windows reserves", w.out.Name))
	}
	return r, nil
}

func quoted(patterns []string) string {
	texts := make([]string, 0, len(patterns))
	for _, p := range patterns {
		texts = append(texts, fmt.Sprintf("%q", p))
	}
	return strings.Join(texts, ", ")
}

// failure is an error that says nothing about the job.
func (w *walk) failure(err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	if w.caller.Err() != nil {
		return context.Cause(w.caller)
	}
	return &Error{Class: forge.UploadFailed, Output: w.out.Name, Err: err}
}

func (w *walk) refusal(path, why string) error {
	var r refusals
	r.add(path, why)
	return r.err(w.out.Name)
}

// unreadable is the error for a base that cannot be opened.
func (w *walk) unreadable(path string, err error) error {
	if why := reason(err); why != "" {
		return w.refusal(path, why)
	}
	return w.failure(err)
}
