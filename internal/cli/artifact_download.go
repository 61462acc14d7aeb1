package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// downloadDir is where artifacts go if nothing else is said.
const downloadDir = "artifacts"

// downloaded is an artifact with its place here.
type downloaded struct {
	api.Artifact
	Path string `json:"path"` // below the folder that was named, with slashes
}

func (a *app) artifactDownload() *cobra.Command {
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use: "download [RUN] [NAME…]", Short: "Fetch the artifacts of a run, each into a folder of its job",
		Long: `Fetch all artifacts of a run, or those with a name: into DIR/JOB/NAME, or DIR/JOB/LEG/NAME where
the job has several legs, as jobs find them below /work/needs. Without a run it is the latest one.
Of a job that was tried again it is what the last attempt has kept.

Names, links and executable bits are kept, and everything is compared with the digest that the
artifact is known by. Nothing outside of DIR is written, and nothing that is there already unless
--force is given.`,
		Example: `  forgeyard artifact download                        all of the latest run, into artifacts
  forgeyard artifact download 01JB4Z bin --dir out
  forgeyard artifact download 01JB4Z -o json         where each went, for tools`,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			run, names, err := a.runAndNames(cmd.Context(), client, args)
			if err != nil {
				return err
			}
			all, err := artifactsOfRun(cmd.Context(), client, run, names)
			if err != nil {
				return err
			}
			if err := a.downloadAll(cmd.Context(), client, all, dir, force); err != nil {
				return err
			}
			if a.output == "json" {
				return a.print().Value(api.List[downloaded]{Items: all})
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", downloadDir, "folder to write into; made if it is not there")
	cmd.Flags().BoolVarP(&force, "force", "f", false, "write over files that are there")
	return cmd
}

// runAndNames tells a run from names of artifacts.
func (a *app) runAndNames(ctx context.Context, client *api.Client, args []string) (*api.Run, []string, error) {
	if len(args) > 0 && mayBeID(args[0]) {
		run, err := client.Run(ctx, args[0])
		if err == nil || !isCode(err, api.CodeNotFound) {
			return run, args[1:], err
		}
		if len(args[0]) > 8 { // no name of an artifact, in all likelihood
			return nil, nil, err
		}
	}
	run, err := a.latestRun(ctx, client)
	return run, args, err
}

// artifactsOfRun lists what is to be fetched, with its places.
func artifactsOfRun(ctx context.Context, client *api.Client, run *api.Run, names []string) ([]downloaded, error) {
	all := []downloaded{}
	at := map[string]int{}
	var known []string
	for page := (api.Page{Limit: api.MaxPage}); ; {
		list, err := client.Artifacts(ctx, api.ArtifactFilter{Run: run.ID}, page)
		if err != nil {
			return nil, err
		}
		for _, k := range list.Items {
			if ours(&k) {
				continue
			}
			if !slices.Contains(known, k.Name) {
				known = append(known, k.Name)
			}
			if len(names) > 0 && !slices.Contains(names, k.Name) {
				continue
			}
			d := downloaded{k, placeOf(run, &k)}
			if i, again := at[d.Path]; again {
				all[i] = d // a later attempt
				continue
			}
			at[d.Path] = len(all)
			all = append(all, d)
		}
		if page.Cursor = list.Next; page.Cursor == "" {
			break
		}
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, console.Usage("run %s has kept nothing named %q; there are: %s", run.ID, name, strings.Join(known, ", "))
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("run %s has kept nothing", run.ID)
	}
	return all, nil
}

// placeOf is where an artifact goes: as below /work/needs.
func placeOf(run *api.Run, k *api.Artifact) string {
	place := k.JobKey
	legs := 0
	var leg forge.Leg
	for _, jobs := range [][]api.Job{run.Taken, run.Jobs} {
		for i := range jobs {
			j := &jobs[i]
			if j.Key == k.JobKey {
				legs++
			}
			if j.ID != k.Job {
				continue
			}
			for _, v := range j.Leg {
				leg = append(leg, forge.AxisValue(v))
			}
		}
	}
	if legs > 1 && len(leg) > 0 {
		place = path.Join(place, pipeline.LegDir(leg))
	}
	return path.Join(place, k.Name)
}

// downloadAll fetches artifacts into their places. Nothing is fetched where one of them would be written over.
func (a *app) downloadAll(ctx context.Context, client *api.Client, all []downloaded, dir string, force bool) (err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as mkdir does
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for i := range all {
		d := &all[i]
		if !filepath.IsLocal(filepath.FromSlash(d.Path)) {
			return fmt.Errorf("the name %q of what the run has kept leads out of %s", d.Name, dir)
		}
		if used, err := occupied(root, filepath.FromSlash(d.Path)); err != nil {
			return err
		} else if used && !force {
			return fmt.Errorf("%s is there already; write over it with --force, or choose another folder with --dir", filepath.Join(dir, filepath.FromSlash(d.Path)))
		}
	}
	for i := range all {
		d := &all[i]
		n, err := fetchTo(ctx, client, &d.Artifact, root, filepath.FromSlash(d.Path), force)
		if err != nil {
			return err
		}
		a.note("%s: %s, %s", filepath.Join(dir, filepath.FromSlash(d.Path)), files(&n), size(d.Bytes))
	}
	return nil
}

// occupied reports whether something is at a place. A folder without anything in it is nothing.
func occupied(root *os.Root, name string) (used bool, err error) {
	info, err := root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil || !info.IsDir():
		return true, err
	}
	f, err := root.Open(name)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err = f.ReadDir(1); err == io.EOF {
		return false, nil
	}
	return true, err
}

// fetchTo fetches an artifact to a place below a folder.
func fetchTo(ctx context.Context, client *api.Client, k *api.Artifact, root *os.Root, name string, force bool) (uint64, error) {
	if !k.Tree {
		name = filepath.Dir(name) // the one file has the artifact's name
	}
	if err := root.MkdirAll(name, 0o755); err != nil {
		return 0, err
	}
	to, err := root.OpenRoot(name)
	if err != nil {
		return 0, err
	}
	n, err := fetchBelow(ctx, client, k, "", to, force)
	return n, errors.Join(err, to.Close())
}
