//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Where a workload finds its source and leaves its artifact, and what that is made of.
const (
	sourceInside  = "/work/source"
	outputsInside = "/work/outputs"
	madeName      = "made"
)

// Bounds of a source: many files that travel together, and some that travel by themselves.
const (
	sourceFiles = 60
	smallFile   = 6000
	largeEach   = 20 // every so manieth file is large
	largeFile   = 3 << 20
)

// sourceOf makes the files of a plan's source. They follow from the seed.
func sourceOf(seed uint64) map[string][]byte {
	random := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), byte(seed >> 24)})
	sizes := rand.New(random)
	files := map[string][]byte{}
	for i := range sourceFiles {
		size := sizes.IntN(smallFile)
		if i%largeEach == 0 {
			size += largeFile
		}
		content := make([]byte, size)
		_, _ = random.Read(content) // it never fails
		files[fmt.Sprintf("d%d/e%d/f%d", i%3, i%5, i)] = content
	}
	return files
}

// plant puts files into the daemon's store as a tree that jobs can start from.
func plant(ctx context.Context, into cas.Sink, files map[string][]byte) (api.Tree, error) {
	var b tree.Builder
	put := func(ref digest.Ref, content []byte) error { return into.Put(ctx, ref, bytes.NewReader(content)) }
	for path, content := range files {
		e := tree.Entry{Kind: tree.File, Ref: digest.RefOf(content)}
		if err := b.Add(path, e); err != nil {
			return api.Tree{}, err
		}
		if err := put(e.Ref, content); err != nil {
			return api.Tree{}, fmt.Errorf("source: %w", err)
		}
	}
	t, _, err := b.Build(put)
	return api.Tree{Root: t.Root.String(), Files: t.Files, Bytes: api.Size(t.Bytes), Depth: t.Depth}, err
}

// sumOf is of files with their paths.
func sumOf(files map[string][]byte) string {
	var all bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(files)) {
		fmt.Fprintf(&all, "%s %d\n", path, len(files[path]))
		all.Write(files[path])
	}
	return digest.RefOf(all.Bytes()).String()
}

// made is what an attempt makes of its source.
func made(attempt, sum string) string { return attempt + " " + sum + "\n" }

// leave makes the artifact of a workload, of all the source that it sees.
func leave(attempt string) error {
	files := map[string][]byte{}
	err := filepath.WalkDir(sourceInside, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		files[path[len(sourceInside)+1:]], err = os.ReadFile(path)
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(outputsInside, madeName), []byte(made(attempt, sumOf(files))), 0o600)
}

// observedArtifact is one that the daemon has of a job.
type observedArtifact struct {
	attempt string
	content string
}

// artifacts asks the daemon for what it has kept of a job.
func (g *game) artifacts(ctx context.Context, job string) (all []observedArtifact, err error) {
	list, err := g.client.Artifacts(ctx, api.ArtifactFilter{Job: job}, api.Page{})
	if err != nil {
		return nil, err
	}
	for _, a := range list.Items {
		in, err := g.client.ArtifactFile(ctx, a.ID, madeName)
		if err != nil {
			return nil, fmt.Errorf("artifact %s: %w", a.ID, err)
		}
		content, err := io.ReadAll(in)
		_ = in.Close() // all of it was read
		if err != nil {
			return nil, fmt.Errorf("artifact %s: %w", a.ID, err)
		}
		all = append(all, observedArtifact{attempt: a.Attempt, content: string(content)})
	}
	return all, nil
}

// checkBytes: a job that succeeded has one artifact, which the attempt that decided has made of the whole source.
func checkBytes(j observedJob, report func(string, string, ...any)) {
	if !j.succeeded {
		return
	}
	if len(j.artifacts) != 1 {
		report("bytes", "it succeeded and has %d artifacts", len(j.artifacts))
		return
	}
	for _, a := range j.attempts {
		if got := j.artifacts[0]; a.decided && (got.attempt != a.id || got.content != made(a.id, j.sum)) {
			report("bytes", "attempt %d decided, and the artifact is attempt %s's: %q, want %q", a.number, got.attempt, got.content, made(a.id, j.sum))
		}
	}
}
