package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/pipeline"
	"github.com/forgeyard/forgeyard/internal/snapshot"
	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

// sourceNone as --source gives a job no source.
const sourceNone = "none"

// defaultOutput is the name of an output that was given without one.
const defaultOutput = "output"

// sourceFlags say what a job starts from and what it leaves.
type sourceFlags struct {
	dir     string
	mode    string
	git     bool
	outputs []string
	into    string
}

func (s *sourceFlags) add(f *pflag.FlagSet) {
	f.StringVar(&s.dir, "source", "", "what the job starts from: a folder, or the git repository that it is in; or none (default: the repository around the working directory)")
	f.StringVar(&s.mode, "source-mode", "cow", "what the job may do with its source: cow (write into a copy of its own) or ro")
	f.BoolVar(&s.git, "source-git", true, "give the job a clean repository of the commit, with the tags that name it or one before it")
	f.StringArrayVar(&s.outputs, "output-files", nil, "files to keep, as NAME=PATTERN[,PATTERN…] or PATTERN, below the source; repeatable")
	f.StringVar(&s.into, "download", "", "folder that gets what the job kept, each output in a folder of its name")
}

// outputsOf reads --output-files.
func (s *sourceFlags) outputsOf() ([]api.Output, error) {
	var outputs []api.Output
	for i, text := range s.outputs {
		name, patterns, named := strings.Cut(text, "=")
		if !named {
			name, patterns = defaultOutput, text
			if i > 0 {
				name = fmt.Sprintf("%s-%d", defaultOutput, i+1)
			}
		}
		if name == "" || patterns == "" {
			return nil, console.Usage("--output-files %q: write NAME=PATTERN or PATTERN, as in bin=dist/**", text)
		}
		outputs = append(outputs, api.Output{Name: name, Patterns: strings.Split(patterns, ",")})
	}
	return outputs, nil
}

// check reports what cannot be a source before anything is started for it.
func (s *sourceFlags) check() error {
	if _, err := forge.ParseInputMode(s.mode); err != nil {
		return console.Usage("--source-mode %q: use cow or ro", s.mode)
	}
	if s.dir == "" || s.dir == sourceNone {
		return nil
	}
	if info, err := os.Stat(s.dir); err != nil || !info.IsDir() {
		return console.Usage("--source %s: there is no such folder", s.dir)
	}
	return nil
}

// bring captures the source and puts it where the daemon has its objects, and makes it the request's. A job starts where the
// command was typed.
func (a *app) bring(ctx context.Context, client *api.Client, request *api.RunRequest, s *sourceFlags) error {
	if s.dir == sourceNone {
		return nil
	}
	dir := s.dir
	if dir == "" {
		dir = "."
		if _, err := git.Find(dir); errors.Is(err, git.ErrNone) {
			a.note("no git repository here, so the job starts without files; --source . gives it this folder")
			return nil
		}
	}
	objects := client.Objects(forge.ProjectName(request.Project))
	progress, done := a.progress()
	options := snapshot.Options{Dir: dir, Index: a.sourceIndex(dir), Git: s.git, Progress: progress}
	defer done()
	taken, err := snapshot.Take(ctx, options, objects)
	if errors.Is(err, git.ErrNone) || errors.Is(err, git.ErrNoCommit) {
		options.Git = false // there is nothing that could come along
		taken, err = snapshot.Take(ctx, options, objects)
	}
	if err != nil {
		return a.sourceFailed(err)
	}
	source := taken.Tree
	if taken.Repository != nil {
		if source, err = cas.Join(ctx, objects, cas.Part{Tree: source}, cas.Part{Path: ".git", Tree: *taken.Repository}); err != nil {
			return err
		}
	}
	for _, w := range taken.Warnings.Named {
		a.note("left out: %s", console.Plain(w.String()))
	}
	if taken.Warnings.More > 0 {
		a.note("left out: %d more", taken.Warnings.More)
	}
	if p := request.Pipeline; p != nil {
		p.Source = treeOf(taken.Tree)
		if taken.Repository != nil {
			p.SourceWithGit = treeOf(source)
		}
		if f := taken.Facts; f != nil {
			known := knownOf(f.Head, f.Dirty)
			p.Git = api.GitFacts{Event: p.Git.Event, SHA: known.SHA, Ref: known.Ref, Branch: known.Branch, Tag: known.Tag, Dirty: known.Dirty}
		}
		return nil
	}
	for i := range request.Jobs {
		spec := &request.Jobs[i].Spec
		spec.Inputs = []api.Input{{Mount: forge.SourceDir, Mode: s.mode, Tree: *treeOf(source)}} // a command has no others
		for k := range spec.Steps {
			if spec.Steps[k].Dir == "" && taken.Within != "" {
				spec.Steps[k].Dir = forge.SourceDir + "/" + taken.Within
			}
		}
		if taken.Facts != nil {
			env := map[string]string{}
			for _, e := range knownOf(taken.Facts.Head, taken.Facts.Dirty).Environment() {
				env[e.Name] = e.Value
			}
			maps.Copy(env, spec.Env) // what the user has set counts
			spec.Env = env
		}
	}
	return nil
}

// knownOf is what a run knows of a commit that it was taken from.
func knownOf(h git.Head, dirty bool) pipeline.Facts {
	known := pipeline.Facts{Event: pipeline.EventManual, SHA: h.SHA, Ref: h.Ref, Branch: h.Branch(), Dirty: dirty}
	if len(h.Tags) > 0 {
		known.Tag = h.Tags[0]
	}
	return known
}

func treeOf(t forge.TreeRef) *api.Tree {
	return &api.Tree{Root: t.Root.String(), Files: t.Files, Bytes: api.Size(t.Bytes), Depth: t.Depth}
}

// sourceIndex is the file in which is kept what was captured of a folder, or "" where there is no place for it.
func (a *app) sourceIndex(dir string) string {
	base, err := a.base("XDG_CACHE_HOME", ".cache")
	if err != nil {
		return ""
	}
	dir, err = filepath.Abs(dir)
	if err != nil {
		return ""
	}
	if top, err := git.Find(dir); err == nil {
		dir = top
	}
	base = filepath.Join(base, "source")
	if err := os.MkdirAll(base, 0o700); err != nil {
		return ""
	}
	name := strings.TrimPrefix(digest.Of([]byte(dir)).String(), "b3:")
	return filepath.Join(base, name[:32])
}

// sourceFailed says what to do about a source that cannot be captured.
func (a *app) sourceFailed(err error) error {
	var refused *snapshot.RefusedError
	var changed *snapshot.ChangedError
	switch {
	case errors.As(err, &refused):
		return console.Usage("%v\nName another folder with --source DIR, or give the job none: --source none", err)
	case errors.As(err, &changed):
		return fmt.Errorf("%w\nWait until they are written, and try again", err)
	case errors.Is(err, git.ErrBare):
		return console.Usage("%v\nGive the job another source with --source DIR, or none: --source none", err)
	}
	return err
}
