package cli

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
)

func (a *app) artifactCommand() *cobra.Command {
	return console.Group("artifact", "List and fetch what jobs have kept", a.artifactList(), a.artifactGet(), a.artifactDownload())
}

// ours reports whether something was kept for later jobs or caches, and is no artifact that somebody has asked for.
func ours(k *api.Artifact) bool { return strings.HasPrefix(k.Name, "forgeyard.") }

func (a *app) artifactList() *cobra.Command {
	var page api.Page
	var all bool
	cmd := &cobra.Command{
		Use: "list RUN|JOB|ATTEMPT", Aliases: []string{"ls"}, Short: "List what a run, a job or an attempt has kept", Args: cobra.ExactArgs(1),
		Example: "  forgeyard artifact list 01JB4Z\n  forgeyard artifact list 01JB4Z -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			list, err := artifactsOf(cmd.Context(), client, args[0], page)
			if err != nil {
				return err
			}
			if !all {
				list.Items = slices.DeleteFunc(list.Items, func(k api.Artifact) bool { return ours(&k) })
			}
			defer a.more(cmd, list.Next)
			return a.print().Show(list, func(w io.Writer) {
				console.Row(w, "ARTIFACT", "NAME", "JOB", "FILES", "SIZE")
				for _, k := range list.Items {
					console.Row(w, k.ID, k.Name, k.JobKey, count(k.Files), size(k.Bytes))
				}
			})
		},
	}
	pageFlags(cmd, &page)
	cmd.Flags().BoolVar(&all, "all", false, "also what is kept for the outputs of steps and for caches")
	return cmd
}

// kept tells what a run that has ended has kept, and fetches it into folders below one, if there is one.
func (a *app) kept(ctx context.Context, client *api.Client, run, into string) error {
	list, err := client.Artifacts(ctx, api.ArtifactFilter{Run: run}, api.Page{})
	if err != nil {
		return fmt.Errorf("list what the run has kept: %w", err)
	}
	for _, k := range list.Items {
		a.note("kept %s: %s, %s (artifact %s)", console.Plain(k.Name), files(k.Files), size(k.Bytes), k.ID)
		if into == "" {
			continue
		}
		if !filepath.IsLocal(k.Name) {
			return fmt.Errorf("the name %q of what the run has kept leads out of %s", k.Name, into)
		}
		if _, err := fetchInto(ctx, client, &k, "", filepath.Join(into, k.Name), true); err != nil {
			return err
		}
	}
	return nil
}

// artifactsOf lists what the run, the job or the attempt of an id has kept, whichever it is.
func artifactsOf(ctx context.Context, client *api.Client, id string, page api.Page) (list *api.List[api.Artifact], err error) {
	for _, f := range []api.ArtifactFilter{{Run: id}, {Job: id}, {Attempt: id}} {
		if list, err = client.Artifacts(ctx, f, page); !isCode(err, api.CodeNotFound) {
			return list, err
		}
	}
	return nil, api.NewProblem(api.CodeNotFound, "no run, job or attempt has the id %q", id)
}

func count(n *uint64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatUint(*n, 10)
}

// files says how many.
func files(n *uint64) string {
	if n != nil && *n == 1 {
		return "1 file"
	}
	return cmp.Or(count(n), "some") + " files"
}

func size(n *uint64) string {
	if n == nil {
		return ""
	}
	return forge.Bytes(*n).String()
}

func (a *app) artifactGet() *cobra.Command {
	var to, name string
	var force bool
	cmd := &cobra.Command{
		Use: "get ARTIFACT|RUN [PATH]", Short: "Fetch an artifact, or a file or folder of it", Args: cobra.RangeArgs(1, 2),
		Long: `Fetch an artifact into a folder, with its links and executable bits. Of a run that has kept only one
it is that one; of several --name says which. Nothing outside of the folder is written, and no file
that is there unless --force is given.`,
		Example: `  forgeyard artifact get 01JB4Z --to out
  forgeyard artifact get 01JB4Z --name bin --to out dist/app`,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			artifact, err := chosen(cmd.Context(), client, args[0], name)
			if err != nil {
				return err
			}
			at := ""
			if len(args) > 1 {
				at = args[1]
			}
			if to == "" {
				if to = artifact.Name; !filepath.IsLocal(to) {
					return console.Usage("the name %q of the artifact is no folder here; name one with --to DIR", to)
				}
			}
			n, err := fetchInto(cmd.Context(), client, artifact, at, to, force)
			if err != nil {
				return err
			}
			a.note("%s: %s in %s", console.Plain(artifact.Name), files(&n), to)
			return nil
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "folder to write into; made if it is not there (default: the artifact's name)")
	cmd.Flags().StringVar(&name, "name", "", "which of a run's artifacts")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "write over files that are there")
	return cmd
}

// chosen finds the artifact that is meant: by its own id, or as the only one, or the newest with a name, of a run, a job or an
// attempt.
func chosen(ctx context.Context, client *api.Client, id, name string) (*api.Artifact, error) {
	if strings.Contains(id, ".") {
		folder, err := client.Artifact(ctx, id, "", api.Page{Limit: 1})
		if err != nil {
			return nil, err
		}
		return &folder.Artifact, nil
	}
	list, err := artifactsOf(ctx, client, id, api.Page{Limit: api.MaxPage})
	if err != nil {
		return nil, err
	}
	var found *api.Artifact
	var names []string
	for i := range list.Items {
		k := &list.Items[i]
		if ours(k) && k.Name != name {
			continue
		}
		if names = append(names, k.Name); name == "" || k.Name == name {
			found = k
		}
	}
	switch {
	case len(names) == 0:
		return nil, api.NewProblem(api.CodeNotFound, "%s has kept nothing", id)
	case found == nil:
		return nil, console.Usage("%s has kept nothing named %q; there are: %s", id, name, strings.Join(names, ", "))
	case name == "" && len(names) > 1:
		return nil, console.Usage("%s has kept several; say which with --name: %s", id, strings.Join(names, ", "))
	}
	return found, nil
}

// fetchInto writes what stands at a path of an artifact into a folder, and says how many files and links there were. Of a whole
// artifact it is then known that every name and byte is what the artifact's digest stands for.
func fetchInto(ctx context.Context, client *api.Client, k *api.Artifact, at, to string, force bool) (n uint64, err error) {
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // as mkdir does
		return 0, err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return fetchBelow(ctx, client, k, at, root, force)
}

// fetchBelow is fetchInto a folder that is open.
func fetchBelow(ctx context.Context, client *api.Client, k *api.Artifact, at string, root *os.Root, force bool) (n uint64, err error) {
	in, err := client.ArtifactArchive(ctx, k.ID, at)
	if err != nil {
		return 0, err
	}
	defer func() { _ = in.Close() }()
	var came arrived
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		switch {
		case err == io.EOF && at == "":
			return n, came.check(k)
		case err == io.EOF:
			return n, nil
		case err != nil:
			return n, fmt.Errorf("the artifact broke off behind %s: %w", files(&n), err)
		}
		hash := digest.NewHash()
		if err := place(root, h, io.TeeReader(archive, hash), force); err != nil {
			return n, fmt.Errorf("write %s: %w", filepath.Join(root.Name(), filepath.FromSlash(h.Name)), err)
		}
		if err := came.add(h, hash); err != nil {
			return n, err
		}
		if h.Typeflag != tar.TypeDir {
			n++
		}
	}
}

// arrived is what has come of an artifact, as a tree of its own.
type arrived struct {
	tree tree.Builder
	file digest.Ref // of the last one
}

func (a *arrived) add(h *tar.Header, content *digest.Hash) error {
	e := tree.Entry{Kind: tree.Folder}
	switch h.Typeflag {
	case tar.TypeSymlink:
		e = tree.Entry{Kind: tree.Link, Target: h.Linkname}
	case tar.TypeReg:
		a.file = content.Ref()
		e = tree.Entry{Kind: tree.File, Ref: a.file, Executable: h.FileInfo().Mode()&0o111 != 0}
	}
	if err := a.tree.Add(strings.TrimSuffix(h.Name, "/"), e); err != nil {
		return fmt.Errorf("what came is no artifact: %w", err)
	}
	return nil
}

// check compares what came with the digest that an artifact is known by.
func (a *arrived) check(k *api.Artifact) error {
	got := a.file
	if k.Tree {
		root, _, err := a.tree.Build(func(digest.Ref, []byte) error { return nil })
		if err != nil {
			return fmt.Errorf("what came is no artifact: %w", err)
		}
		got = root.Root
	}
	if got.String() != k.Ref {
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("what came is not %s, whose digest is %s, but %v; do not use it, and ask the daemon: forgeyard cas verify", console.Plain(k.Name), k.Ref, got))
	}
	return nil
}

// place writes one entry of an archive. A root never leads out of its folder, whatever the names and links are.
func place(root *os.Root, h *tar.Header, content io.Reader, force bool) error {
	name := filepath.FromSlash(path.Clean(h.Name))
	if h.Typeflag == tar.TypeDir {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if force {
		if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	var err error
	switch h.Typeflag {
	case tar.TypeSymlink:
		err = root.Symlink(h.Linkname, name)
	case tar.TypeReg:
		err = placeFile(root, name, h.FileInfo().Mode().Perm(), content)
	default:
		return fmt.Errorf("an artifact has no entries of kind %q", h.Typeflag)
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w; write over it with --force, or choose another folder with --to", err)
	}
	return err
}

func placeFile(root *os.Root, name string, mode fs.FileMode, content io.Reader) error {
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, content)
	return errors.Join(err, out.Close())
}
