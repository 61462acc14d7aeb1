package git

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
)

// Listed is one path of a repository's source.
type Listed struct {
	Path       string // from the top, with slashes; bytes as git has them
	Executable bool   // by the index
	Untracked  bool   // not in the index, and not ignored
	Sparse     bool   // in the index, but not wanted on disk
	Submodule  bool   // a commit of another repository, whose files may be there
	Nested     bool   // a repository that stands there without being a submodule
}

// List returns what belongs to the source, sorted by path, each path once: what is in the index, whether or not it is on disk,
// and what is on disk and not ignored. Rules are those of .gitignore and of the repository's info/exclude.
func (r *Repo) List(ctx context.Context) ([]Listed, error) {
	var tracked, untracked []Listed
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { tracked, err = r.tracked(ctx); return err })
	group.Go(func() (err error) { untracked, err = r.untracked(ctx); return err })
	if err := group.Wait(); err != nil {
		return nil, err
	}
	all := append(tracked, untracked...)
	slices.SortStableFunc(all, func(a, b Listed) int { return strings.Compare(a.Path, b.Path) })
	return slices.CompactFunc(all, func(a, b Listed) bool { return a.Path == b.Path }), nil
}

// tracked reads lines of the form "H 100644 <id> 0\tpath"; a path in conflict comes once for each side.
func (r *Repo) tracked(ctx context.Context) ([]Listed, error) {
	out, err := r.output(ctx, "ls-files", "-z", "-t", "--stage")
	if err != nil {
		return nil, err
	}
	listed := make([]Listed, 0, bytes.Count(out, []byte{0}))
	for line := range records(out) {
		head, path, ok := strings.Cut(line, "\t")
		fields := strings.Fields(head)
		if !ok || len(fields) != 4 {
			return nil, fmt.Errorf("git ls-files says %q", line)
		}
		listed = append(listed, Listed{
			Path: path, Executable: fields[1] == "100755", Sparse: fields[0] == "S", Submodule: fields[1] == "160000",
		})
	}
	return listed, nil
}

func (r *Repo) untracked(ctx context.Context) ([]Listed, error) {
	out, err := r.output(ctx, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return nil, err
	}
	var listed []Listed
	for line := range records(out) {
		path, nested := strings.CutSuffix(line, "/")
		listed = append(listed, Listed{Path: path, Untracked: true, Nested: nested})
	}
	return listed, nil
}

// records are the parts of out that end with NUL.
func records(out []byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for len(out) > 0 {
			record, rest, _ := bytes.Cut(out, []byte{0})
			if !yield(string(record)) {
				return
			}
			out = rest
		}
	}
}

// Ignored returns those of folders, given from the top with slashes, that git ignores with all that is in them.
func (r *Repo) Ignored(ctx context.Context, folders []string) (map[string]bool, error) {
	ignored := map[string]bool{}
	if len(folders) == 0 {
		return ignored, nil
	}
	stdin := strings.NewReader(strings.Join(folders, "/\x00") + "/\x00")
	out, err := r.answer(ctx, stdin, "check-ignore", "-z", "--stdin")
	if err != nil && !exited(err, 1) { // 1: none of them
		return nil, err
	}
	for path := range records(out) {
		ignored[strings.TrimSuffix(path, "/")] = true
	}
	return ignored, nil
}

// TrustsModes reports whether the executable bits on disk are what counts, and not those in the index.
func (r *Repo) TrustsModes(ctx context.Context) (bool, error) {
	out, err := r.output(ctx, "config", "--type=bool", "--get", "core.fileMode")
	if exited(err, 1) { // not set
		return true, nil
	}
	return string(out) == "true\n", err
}
