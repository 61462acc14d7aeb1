package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// maxNames is how many names of a folder are listed at a time.
const maxNames = 1024

// walk is one capture. Folders are entered one by one, by the caller's goroutine; their files are read by a few others. A
// folder's tree is made once nothing in it is on its way any more, by whoever sees that. So memory is that of the folders
// that are open, however many there are, and of open folders there are at most as many as a tree may be deep.
type walk struct {
	caller   context.Context // Take's
	ctx      context.Context // ends with it, and at the first error
	end      context.CancelCauseFunc
	out      forge.Output
	patterns *Patterns
	sink     Sink
	limits   Limits

	// Of the walking goroutine.
	found   []bool // patterns that have matched something
	seen    uint64 // entries
	folders uint64 // that may be kept
	files   uint64 // and links, that are taken
	bytes   forge.Bytes

	readers chan struct{} // has an element for each file being read
	reading sync.WaitGroup

	mu      sync.Mutex
	refused refusals
	err     error      // the first
	root    tree.Entry // once all is done
}

// node is a folder on its way into the tree.
type node struct {
	up    *node // nil at the base
	name  string
	depth int  // names between the base and what is in it
	kept  bool // even while it is empty

	// Under walk.mu.
	pending int // its own listing, files being read, folders in it
	entries []tree.Entry
}

func newWalk(ctx context.Context, out forge.Output, patterns *Patterns, sink Sink, limits Limits) *walk {
	w := &walk{caller: ctx, out: out, patterns: patterns, sink: sink, limits: limits, found: make([]bool, len(patterns.rules))}
	if w.limits.Readers <= 0 {
		w.limits.Readers = defaultReaders
	}
	if w.limits.Entries == 0 {
		w.limits.Entries = defaultEntries
	}
	if w.limits.Folders == 0 {
		w.limits.Folders = defaultFolders
	}
	w.ctx, w.end = context.WithCancelCause(ctx)
	w.readers = make(chan struct{}, w.limits.Readers)
	return w
}

// run walks the whole base. When it returns nothing is being read any more.
func (w *walk) run(base *os.Root) error {
	defer w.end(nil)
	n := &node{kept: w.takes(w.patterns.base), pending: 1}
	if err := w.folder(n, base, w.patterns.base, w.patterns.start); err != nil {
		w.fail(err)
	}
	w.reading.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

func (w *walk) takes(v verdict) bool { return v != undecided && w.patterns.rules[v].takes }

// fail ends the walk. The first error is the walk's.
func (w *walk) fail(err error) {
	w.mu.Lock()
	if w.err == nil {
		w.err = err
	}
	w.mu.Unlock()
	w.end(err)
}

// refuse notes what cannot be kept. The walk goes on, to name all of it; nothing more is read.
func (w *walk) refuse(n *node, name, why string) {
	w.mu.Lock()
	w.refused.add(n.path(name), why)
	w.mu.Unlock()
}

func (w *walk) refusing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.refused.first) > 0
}

func (w *walk) tooLarge(path, format string, args ...any) error {
	e := &Error{Class: forge.OutputTooLarge, Output: w.out.Name, Err: fmt.Errorf(format, args...)}
	if path != "" {
		e.Paths = []string{path}
	}
	return e
}

// path is where something in a folder is, from the base.
func (n *node) path(name string) string {
	names := []string{name}
	for ; n.up != nil; n = n.up {
		names = append(names, n.name)
	}
	slices.Reverse(names)
	return strings.Join(names, "/")
}

// folder goes through a folder: v decides about it, and from is where patterns are in it.
func (w *walk) folder(n *node, in *os.Root, v verdict, from []position) (err error) {
	dir, err := in.Open(".")
	if err != nil {
		return fmt.Errorf("list a folder: %w", err)
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	for {
		names, err := dir.Readdirnames(maxNames)
		if errors.Is(err, io.EOF) {
			return w.done(n)
		} else if err != nil {
			return fmt.Errorf("list a folder: %w", err)
		}
		for _, name := range names {
			if err := w.entry(n, in, name, v, from); err != nil {
				return err
			}
		}
	}
}

// entry looks at one name in a folder.
func (w *walk) entry(n *node, in *os.Root, name string, v verdict, from []position) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if w.seen++; w.seen > w.limits.Entries {
		return w.tooLarge("", "more than %d entries would have to be looked at; give it a base with less below it", w.limits.Entries)
	}
	info, err := in.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody has taken it away
	} else if err != nil {
		return fmt.Errorf("look at %q: %w", shown(n.path(name)), err)
	}
	decides, into := enter(from, name, info.IsDir(), func(rule int) bool { return w.matters(v, rule) }, func(rule int) { w.found[rule] = true })
	v = max(v, decides)
	switch {
	case info.IsDir() && (w.takes(v) || w.mayTake(v, into)):
		return w.enter(n, in, info, v, into)
	case info.IsDir() || !w.takes(v):
		return nil
	case n.depth >= forge.MaxTreeDepth:
		return w.tooDeep(n, name)
	}
	if why := badName(name); why != "" {
		w.refuse(n, name, why)
		return nil
	}
	if w.files++; w.files > uint64(w.out.MaxFiles) {
		return w.tooLarge("", "it has more than %d files", w.out.MaxFiles)
	}
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return w.file(n, in, info)
	case mode&fs.ModeSymlink != 0:
		return w.link(n, in, info)
	default:
		w.refuse(n, name, "is a "+kindOf(mode)+"; only files, folders and links can be kept")
		return nil
	}
}

// matters reports whether a pattern can still change anything below something that v decides about: the decision, or the
// answer to whether the pattern has matched at all.
func (w *walk) matters(v verdict, rule int) bool {
	return verdict(rule) > v || w.patterns.rules[rule].takes && !w.found[rule]
}

// mayTake reports whether something in a folder that is not taken may be taken all the same.
func (w *walk) mayTake(v verdict, into []position) bool {
	return slices.ContainsFunc(into, func(at position) bool {
		return verdict(at.way.rule) > v && w.patterns.rules[at.way.rule].takes
	})
}

// enter goes through a folder in a folder.
func (w *walk) enter(n *node, in *os.Root, info fs.FileInfo, v verdict, from []position) error {
	name := info.Name()
	if n.depth >= forge.MaxTreeDepth {
		return w.tooDeep(n, name)
	}
	if w.folders++; w.folders > w.limits.Folders {
		return w.tooLarge("", "it has more than %d folders", w.limits.Folders)
	}
	folder, err := openFolder(in, info)
	if why := reason(err); why != "" {
		w.refuse(n, name, why)
		return nil
	} else if err != nil {
		return fmt.Errorf("open %q: %w", shown(n.path(name)), err)
	}
	w.mu.Lock()
	n.pending++
	w.mu.Unlock()
	child := &node{up: n, name: name, depth: n.depth + 1, kept: w.takes(v), pending: 1}
	return errors.Join(w.folder(child, folder, v, from), folder.Close())
}

func (w *walk) tooDeep(n *node, name string) error {
	return w.tooLarge(n.path(name), "there are more than %d folders within each other: %q", forge.MaxTreeDepth, shown(n.path(name)))
}

// link takes a link. It is never followed.
func (w *walk) link(n *node, in *os.Root, info fs.FileInfo) error {
	name := info.Name()
	target, err := in.Readlink(name)
	if err != nil {
		err = changed(in, info, err)
	}
	if why := reason(err); why != "" {
		w.refuse(n, name, why)
		return nil
	} else if err != nil {
		return fmt.Errorf("read the link %q: %w", shown(n.path(name)), err)
	}
	target = filepath.ToSlash(target)
	if why := badTarget(target, n.depth); why != "" {
		w.refuse(n, name, fmt.Sprintf("is a link to %q, %s", shown(target), why))
		return nil
	}
	return w.add(n, tree.Entry{Name: name, Kind: tree.Link, Target: target})
}

// badName says why a name cannot be in a tree.
func badName(name string) string {
	switch {
	case !utf8.ValidString(name):
		return "has a name that is not UTF-8"
	case len(name) > tree.MaxName:
		return fmt.Sprintf("has a name of more than %d bytes", tree.MaxName)
	default:
		return ""
	}
}

// badTarget says why a link with depth folders between it and the base cannot be kept. A target climbs in front, and then
// only goes down: what climbs later would do so from where another link leads, and might get out on that way.
func badTarget(target string, depth int) string {
	climbs, down := 0, false
	switch {
	case !utf8.ValidString(target):
		return "which is not UTF-8"
	case len(target) > tree.MaxTarget:
		return fmt.Sprintf("which has more than %d bytes", tree.MaxTarget)
	case target == "":
		return "which is nothing"
	case strings.HasPrefix(target, "/"):
		return "which is absolute; only relative links can be kept"
	}
	for name := range strings.SplitSeq(target, "/") {
		switch {
		case name == ".." && down:
			return `which has ".." behind a name; write the shorter path`
		case name == "..":
			climbs++
		case name != "" && name != ".":
			down = true
		}
	}
	if climbs > depth {
		return "which is outside of the output's base"
	}
	return ""
}

// kindOf names what is no file, folder or link.
func kindOf(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeNamedPipe != 0:
		return "pipe"
	case mode&fs.ModeSocket != 0:
		return "socket"
	case mode&fs.ModeDevice != 0:
		return "device"
	default:
		return "special file"
	}
}
