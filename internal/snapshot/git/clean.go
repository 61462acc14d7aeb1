package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// cleanForm counts the forms in which Clean has written repositories: another form is another key.
const cleanForm = 1

// Bounds of a clean repository.
const (
	maxHistory    = 10_000   // commits, the newest ones
	maxMetaObject = 16 << 20 // bytes of one commit or tag
	maxBlobPack   = 8 << 20  // bytes of files in a pack of several
	maxTagChain   = 8        // tags of tags
)

// Clean writes what stands in .git of a fresh clone of the commit that is checked out into the empty folder dir: its files,
// the history that led to it as commits without their files, at most maxHistory of them, and the tags on those. What it
// writes depends on the commit, its history in this clone, and the tags, and on nothing else: not on the machine, the
// version of git, the branch, the time, or how this clone keeps its objects. Whoever has the same gets the same bytes.
//
// It has no hooks, no reflogs, no address and no setting of this clone. No branch is checked out. Its index has no stamps,
// so that git status compares contents once, and is then clean wherever the files stand.
//
// Files of past commits are promised by a remote without an address: log, describe and rev-list work, and fsck and gc are
// content; what needs such a file says that it cannot be fetched.
//
// It refuses more than maxBytes of files, and a clone that lacks some of them.
func (r *Repo) Clean(ctx context.Context, dir string, maxBytes uint64) error {
	head, err := r.SHA(ctx)
	if err != nil {
		return err
	}
	if head == "" {
		return fmt.Errorf("%s: %w", r.Top, ErrNoCommit)
	}
	c := &clean{repo: r, dir: dir, head: head, commits: map[string]bool{}}
	for _, step := range []func(context.Context) error{c.folders, c.readHistory, c.readTags, c.writeHistory, c.readFiles(maxBytes), c.writeFiles} {
		if err := step(ctx); err != nil {
			return fmt.Errorf("clean repository of %s: %w", r.Top, err)
		}
	}
	return c.writeTexts()
}

// clean is a clean repository in the making.
type clean struct {
	repo    *Repo
	dir     string
	head    string
	history []string        // commits, newest first
	commits map[string]bool // the same
	tags    []tag
	objects []string // tags as objects
	tree    string   // of the head
	shallow []string // commits whose parents are left out
	files   []treeEntry
}

// A tag is a name for a commit.
type tag struct{ ref, id, commit string }

func (c *clean) folders(context.Context) error {
	for _, name := range []string{"objects/pack", "objects/info", "refs/heads", "refs/tags"} {
		if err := os.MkdirAll(filepath.Join(c.dir, filepath.FromSlash(name)), 0o755); err != nil { //nolint:gosec // a repository's folders
			return err
		}
	}
	return nil
}

func (c *clean) packs() string { return filepath.Join(c.dir, "objects", "pack") }

func (c *clean) readHistory(ctx context.Context) error {
	out, err := c.repo.output(ctx, "rev-list", fmt.Sprintf("--max-count=%d", maxHistory), c.head)
	if err != nil {
		return err
	}
	c.history = strings.Fields(string(out))
	for _, id := range c.history {
		c.commits[id] = true
	}
	return nil
}

// readTags finds the tags on commits of the history, and the objects between a name and its commit.
func (c *clean) readTags(ctx context.Context) error {
	out, err := c.repo.output(ctx, "for-each-ref", "--format=%(objectname) %(objecttype) %(refname)", "refs/tags")
	if err != nil {
		return err
	}
	next := map[string]string{} // from a tag object to what it names
	var open []string
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			return fmt.Errorf("git for-each-ref says %q", line)
		}
		c.tags = append(c.tags, tag{id: fields[0], ref: fields[2]})
		if fields[1] == "tag" {
			open = append(open, fields[0])
		}
	}
	for range maxTagChain {
		if open, err = c.follow(ctx, open, next); err != nil {
			return err
		}
	}
	c.keepTags(next)
	return nil
}

// follow reads tag objects, notes what they name, and returns those that are tags again.
func (c *clean) follow(ctx context.Context, ids []string, next map[string]string) (more []string, err error) {
	slices.Sort(ids)
	err = c.repo.objects(ctx, slices.Compact(ids), func(id, _ string, size uint64, body io.Reader) error {
		text, err := readMeta(id, size, body)
		if err != nil {
			return err
		}
		next[id] = header(text, "object ")
		if header(text, "type ") == "tag" && next[next[id]] == "" {
			more = append(more, next[id])
		}
		return nil
	})
	return more, err
}

func (c *clean) keepTags(next map[string]string) {
	needed := map[string]bool{}
	c.tags = slices.DeleteFunc(c.tags, func(t tag) bool {
		at := t.id
		for range maxTagChain {
			if next[at] != "" {
				at = next[at]
			}
		}
		return !c.commits[at]
	})
	for i := range c.tags {
		at := c.tags[i].id
		for ; next[at] != ""; at = next[at] {
			needed[at] = true
		}
		c.tags[i].commit = at
	}
	for id := range needed {
		c.objects = append(c.objects, id)
	}
	slices.SortFunc(c.tags, func(a, b tag) int { return strings.Compare(a.ref, b.ref) })
}

// readMeta reads a commit or a tag.
func readMeta(id string, size uint64, body io.Reader) (string, error) {
	if size > maxMetaObject {
		return "", fmt.Errorf("object %s has %d bytes, of at most %d", id, size, maxMetaObject)
	}
	data, err := io.ReadAll(body)
	return string(data), err
}

// header returns the first header of a commit or tag that begins so, or "".
func header(text, prefix string) string {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if value, ok := strings.CutPrefix(line, prefix); ok {
			return value
		}
		if line == "" {
			break
		}
	}
	return ""
}

// writeHistory packs commits and tags.
func (c *clean) writeHistory(ctx context.Context) error {
	ids := slices.Concat(c.history, c.objects)
	slices.Sort(ids)
	return c.pack(ctx, ids, func(id, kind, text string) {
		if kind != "commit" {
			return
		}
		if id == c.head {
			c.tree = header(text, "tree ")
		}
		if c.cut(text) {
			c.shallow = append(c.shallow, id)
		}
	})
}

// promised reports whether there are commits without their files.
func (c *clean) promised() bool { return len(c.history) > 1 }

// cut reports whether a parent of a commit is left out.
func (c *clean) cut(text string) bool {
	for line := range strings.Lines(text) {
		if line == "\n" {
			return false
		}
		if parent, ok := strings.CutPrefix(line, "parent "); ok && !c.commits[strings.TrimSpace(parent)] {
			return true
		}
	}
	return false
}

// pack writes the sorted ids into one pack. It shows the text of each to look, where that is not nil.
func (c *clean) pack(ctx context.Context, ids []string, look func(id, kind, text string)) error {
	p, err := newPack(c.repo.Hash, c.packs(), len(ids))
	if err != nil {
		return err
	}
	err = c.repo.objects(ctx, ids, func(id, kind string, size uint64, body io.Reader) error {
		if look != nil {
			text, err := readMeta(id, size, body)
			if err != nil {
				return err
			}
			look(id, kind, text)
			body = strings.NewReader(text)
		}
		return p.add(id, kind, size, body)
	})
	if err != nil {
		return errors.Join(err, p.abort())
	}
	base, err := p.finish()
	if err != nil || !c.promised() {
		return err
	}
	// A promise holds for what is named from packs that have this mark. They all have it: git gc prunes what only a marked
	// pack names and an unmarked one has.
	return os.WriteFile(base+".promisor", nil, 0o644) //nolint:gosec // what is in a repository is no secret of this user
}

func (c *clean) readFiles(maxBytes uint64) func(context.Context) error {
	return func(ctx context.Context) (err error) {
		if c.files, err = c.repo.treeOf(ctx, c.head); err != nil {
			return err
		}
		total := uint64(0)
		for _, e := range c.files {
			total += e.size
		}
		if total > maxBytes {
			return fmt.Errorf("the files of commit %s have %d bytes, of at most %d", c.head, total, maxBytes)
		}
		return nil
	}
}

// writeFiles packs folders into one pack, and files into packs of which a small change of the source changes few.
func (c *clean) writeFiles(ctx context.Context) error {
	trees := []string{c.tree}
	var blobs []treeEntry
	for _, e := range c.files {
		switch e.kind {
		case "tree":
			trees = append(trees, e.id)
		case "blob":
			blobs = append(blobs, e)
		}
	}
	slices.Sort(trees)
	if err := c.pack(ctx, slices.Compact(trees), nil); err != nil {
		return err
	}
	slices.SortFunc(blobs, func(a, b treeEntry) int { return strings.Compare(a.id, b.id) })
	blobs = slices.CompactFunc(blobs, func(a, b treeEntry) bool { return a.id == b.id })
	return c.writeBlobs(ctx, blobs, 0)
}

// writeBlobs writes one pack, or where that grows too large, those of the two halves that the bit of their ids makes.
func (c *clean) writeBlobs(ctx context.Context, blobs []treeEntry, bit int) error {
	total := uint64(0)
	ids := make([]string, len(blobs))
	for i, e := range blobs {
		ids[i] = e.id
		total += e.size
	}
	switch {
	case len(blobs) == 0:
		return nil
	case len(blobs) == 1 || total <= maxBlobPack:
		return c.pack(ctx, ids, nil)
	}
	at, _ := slices.BinarySearchFunc(blobs, 1, func(e treeEntry, want int) int { return bitOf(e.id, bit) - want })
	if err := c.writeBlobs(ctx, blobs[:at], bit+1); err != nil {
		return err
	}
	return c.writeBlobs(ctx, blobs[at:], bit+1)
}

// bitOf is one bit of a hexadecimal id, counted from its front.
func bitOf(id string, bit int) int {
	digit := strings.IndexByte("0123456789abcdef", id[bit/4])
	return digit >> (3 - bit%4) & 1
}

// writeTexts writes what is left: the files that git reads first.
func (c *clean) writeTexts() error {
	index, err := indexOf(c.repo.Hash, c.files)
	if err != nil {
		return err
	}
	texts := []struct{ name, text string }{
		{"HEAD", c.head + "\n"}, {"config", c.config()}, {"packed-refs", c.refs()}, {"index", string(index)},
	}
	for _, t := range texts {
		if err := c.write(t.name, t.text); err != nil {
			return err
		}
	}
	if len(c.shallow) == 0 {
		return nil
	}
	slices.Sort(c.shallow)
	return c.write("shallow", strings.Join(c.shallow, "\n")+"\n")
}

func (c *clean) write(name, text string) error {
	return os.WriteFile(filepath.Join(c.dir, name), []byte(text), 0o644) //nolint:gosec // what is in a repository is no secret of this user
}

func (c *clean) config() string {
	version, extra := 0, ""
	if c.repo.Hash != "sha1" {
		version, extra = 1, "[extensions]\n\tobjectformat = "+c.repo.Hash+"\n"
	}
	if c.promised() {
		extra += "[remote \"history\"]\n\tpromisor = true\n"
	}
	return fmt.Sprintf("[core]\n\trepositoryformatversion = %d\n\tfilemode = true\n\tbare = false\n[gc]\n\tauto = 0\n"+
		"[maintenance]\n\tauto = false\n%s", version, extra)
}

func (c *clean) refs() string {
	var text strings.Builder
	text.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for _, t := range c.tags {
		fmt.Fprintf(&text, "%s %s\n", t.id, t.ref)
		if t.commit != t.id {
			fmt.Fprintf(&text, "^%s\n", t.commit)
		}
	}
	return text.String()
}

// CleanKey is what Clean depends on in this clone: equal keys mean equal repositories.
func (r *Repo) CleanKey(ctx context.Context) ([]byte, error) {
	sha, err := r.SHA(ctx)
	if err != nil {
		return nil, err
	}
	tags, err := r.output(ctx, "for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")
	if err != nil {
		return nil, err
	}
	shallow, err := os.ReadFile(filepath.Join(r.Common, "shallow"))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	return fmt.Appendf(nil, "%d\n%s\n%s\n%s", cleanForm, sha, tags, shallow), nil
}
