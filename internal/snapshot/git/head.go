package git

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/disk"
)

// maxText bounds each text of a commit that is kept, in bytes.
const maxText = 1 << 10

// Head is what is checked out.
type Head struct {
	SHA       string    // "" before the first commit
	Ref       string    // refs/heads/main, also before the first commit; "" where no branch is checked out
	Tags      []string  // that name the commit, sorted
	Committed time.Time // by the committer's clock, UTC
	Author    string
	Email     string // of the author
	Subject   string // the first paragraph of the message
	Remote    string // where the repository comes from, without credentials; "" where that says nothing elsewhere
}

// Branch is the branch that is checked out, or "".
func (h Head) Branch() string {
	branch, _ := strings.CutPrefix(h.Ref, "refs/heads/")
	return branch
}

// Head asks what is checked out.
func (r *Repo) Head(ctx context.Context) (Head, error) {
	var h Head
	var remotes map[string]string
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) { h, err = r.commit(ctx); return err })
	group.Go(func() (err error) { remotes, err = r.remotes(ctx); return err })
	if err := group.Wait(); err != nil {
		return Head{}, err
	}
	h.Remote = publicURL(origin(remotes, h.Branch()))
	return h, nil
}

// SHA returns the commit that is checked out, or "" before the first one.
func (r *Repo) SHA(ctx context.Context) (string, error) {
	out, err := r.output(ctx, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
	if exited(err, 1) {
		return "", nil
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// commitFormat is what commit asks of a commit: its names come last, as "HEAD -> refs/heads/main, tag: refs/tags/v1".
const commitFormat = "--format=%H%x00%ct%x00%an%x00%ae%x00%s%x00%D"

func (r *Repo) commit(ctx context.Context) (h Head, err error) {
	out, err := r.output(ctx, "log", "-1", "--no-show-signature", "--encoding=UTF-8", "--decorate=full",
		"--decorate-refs=HEAD", "--decorate-refs=refs/heads", "--decorate-refs=refs/tags", commitFormat, "HEAD")
	if err != nil {
		return r.unborn(ctx, err)
	}
	fields := strings.Split(strings.TrimSuffix(string(out), "\n"), "\x00")
	if len(fields) != 6 {
		return h, fmt.Errorf("git log describes the commit in %d fields instead of 6", len(fields))
	}
	seconds, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return h, fmt.Errorf("time of commit %s: %w", fields[0], err)
	}
	h.SHA, h.Committed = fields[0], time.Unix(seconds, 0).UTC()
	h.Author, h.Email, h.Subject = clip(fields[2]), clip(fields[3]), clip(fields[4])
	h.names(fields[5])
	return h, nil
}

// names takes apart what git calls decorations. No name of a branch or tag has a space in it.
func (h *Head) names(decorations string) {
	for name := range strings.SplitSeq(decorations, ", ") {
		if ref, ok := strings.CutPrefix(name, "HEAD -> "); ok {
			h.Ref = ref
		}
		if tag, ok := strings.CutPrefix(name, "tag: refs/tags/"); ok {
			h.Tags = append(h.Tags, tag)
		}
	}
	slices.Sort(h.Tags)
}

// unborn is the head before the first commit, or the error because of which there is no commit to tell of.
func (r *Repo) unborn(ctx context.Context, why error) (h Head, err error) {
	if sha, err := r.SHA(ctx); err != nil || sha != "" {
		return h, why
	}
	h.Ref, err = r.ref(ctx)
	return h, err
}

// clip makes a text of a commit one that can be shown and kept.
func clip(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "\uFFFD")
}

func (r *Repo) ref(ctx context.Context) (string, error) {
	out, err := r.output(ctx, "symbolic-ref", "--quiet", "HEAD")
	if exited(err, 1) { // no branch is checked out
		return "", nil
	}
	return strings.TrimSuffix(string(out), "\n"), err
}

// Dirty reports whether tracked files differ from the commit that is checked out, those of submodules included. What the
// index hides (assume-unchanged, skip-worktree) stays hidden. In a repository of another user than the one who asks, the
// programs by which its settings convert files do not run, and a submodule counts by its commit alone.
func (r *Repo) Dirty(ctx context.Context) (bool, error) {
	info, err := os.Stat(r.Top)
	if err != nil {
		return false, err
	}
	var off []string
	submodules := "none"
	if !disk.Ours(info) {
		submodules = "dirty"
		if off, err = r.filtersOff(ctx); err != nil {
			return false, err
		}
	}
	out, err := r.output(ctx, append(off, "status", "--porcelain", "-z", "--untracked-files=no", "--no-renames",
		"--ignore-submodules="+submodules)...)
	return len(out) > 0, err
}

// filtersOff are arguments that turn off every program that would convert files.
func (r *Repo) filtersOff(ctx context.Context) (args []string, err error) {
	out, err := r.output(ctx, "config", "-z", "--includes", "--name-only", "--get-regexp", `^filter\..*\.(clean|process|required)$`)
	if err != nil && !exited(err, 1) { // 1: none
		return nil, err
	}
	for key := range records(out) {
		value := ""
		if strings.HasSuffix(key, ".required") {
			value = "false"
		}
		args = append(args, "-c", key+"="+value)
	}
	return args, nil
}
