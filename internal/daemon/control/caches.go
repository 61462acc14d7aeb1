package control

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// A cache is carried out with what there is already: one that is found is an input of the job, or a part of its source, and what
// the job makes of it an output that fails nobody. An agent knows nothing of caches, and a job that is tried again starts from the
// same.

// cacheOutput names the output that fills one path of one cache.
func cacheOutput(cache, path int) string {
	return fmt.Sprintf("%s%d.%d", forge.CacheOutput, cache, path)
}

// fill makes inputs and outputs of the caches of a spec. What cannot be found is as good as empty.
func (c *Control) fill(ctx context.Context, project forge.ProjectName, trust forge.TrustClass, spec *forge.JobSpec) {
	caches := spec.Caches
	spec.Caches = nil
	for i := range caches {
		found := c.findCache(ctx, project, trust, &caches[i])
		for k, path := range caches[i].Paths {
			var kept forge.TreeRef
			if k < len(found.Trees) {
				kept = found.Trees[k]
			}
			if !c.putCache(ctx, project, spec, path, kept) {
				continue
			}
			if found.Key == caches[i].Key || caches[i].ReadOnly {
				continue // what a key stands for never changes
			}
			out := forge.DefaultOutput()
			out.Name, out.Base, out.Patterns = cacheOutput(i, k), path, []string{"**"}
			spec.Outputs = append(spec.Outputs, out)
		}
	}
}

// putCache puts the folder of a cache, of which nothing may be known yet, to its place in a job: as an input of its own, or within the
// source. It reports whether what the job leaves there is that folder, and not also something else.
func (c *Control) putCache(ctx context.Context, project forge.ProjectName, spec *forge.JobSpec, path string, kept forge.TreeRef) bool {
	for i := range spec.Inputs {
		in := &spec.Inputs[i]
		below, within := strings.CutPrefix(path, in.Mount+"/")
		switch {
		case within && in.Mount == forge.SourceDir:
			return c.graft(ctx, project, in, below, kept)
		case within, in.Mount == path, strings.HasPrefix(in.Mount, path+"/"):
			return false
		}
	}
	if kept != (forge.TreeRef{}) {
		spec.Inputs = append(spec.Inputs, forge.Input{Mount: path, Tree: kept, Mode: forge.InputCopyOnWrite})
	}
	return true
}

// graft makes a cache a part of the source that the job starts from. A folder that the source itself has is never one of a cache:
// the job would find other files there than those that belong to its commit.
func (c *Control) graft(ctx context.Context, project forge.ProjectName, source *forge.Input, path string, kept forge.TreeRef) bool {
	s := c.stored(project)
	if kept == (forge.TreeRef{}) {
		free, err := cas.Free(ctx, s, source.Tree, path)
		return free && err == nil // what is wrong with the source is told by the job
	}
	joined, err := cas.Graft(ctx, s, source.Tree, path, kept)
	if err != nil {
		c.log.Warn("a cache cannot be put into the source", "project", project, "path", path, "err", err)
		return false
	}
	source.Tree = joined
	return true
}

// findCache finds a cache whose trees are all there; none has an empty key.
func (c *Control) findCache(ctx context.Context, project forge.ProjectName, trust forge.TrustClass, cache *forge.Cache) store.CacheEntry {
	var found store.CacheEntry
	err := c.store.View(ctx, func(v *store.View) (err error) {
		found, err = v.Cache(project, trust, cache.Key, cache.Fallback)
		return err
	})
	for i := 0; err == nil && i < len(found.Trees); i++ {
		if found.Trees[i] != (forge.TreeRef{}) {
			err = c.checkTree(ctx, project, found.Trees[i])
		}
	}
	if err == nil && len(found.Trees) != len(cache.Paths) {
		err = fmt.Errorf("it has %d folders, and the job names %d", len(found.Trees), len(cache.Paths))
	}
	if err == nil {
		err = c.store.Update(ctx, store.ClassRest, func(tx *store.Tx) error { return tx.TouchCache(project, trust, found.Key) })
	}
	if err != nil {
		if !errors.Is(err, store.ErrNotFound) {
			c.log.Warn("a cache cannot be used", "project", project, "key", cache.Key, "err", err)
		}
		return store.CacheEntry{}
	}
	return found
}

// keepCaches keeps what a job that succeeded has left for its caches.
func (d *desk) keepCaches(j *store.Job) error {
	n := d.node(j)
	if j.State != forge.JobSucceeded || len(n.Job.Caches) == 0 || d.cached[j.ID] {
		return nil
	}
	left, err := d.left(j)
	if err != nil {
		return err
	}
	g, err := d.texts(n)
	if err != nil {
		return err
	}
	decision, err := d.plan.Job(n, g)
	if err != nil || decision.Spec == nil {
		return nil //nolint:nilerr // it ran by a plan that nobody can make any more: its caches have no keys
	}
	var made []store.CacheEntry
	for i, c := range decision.Spec.Caches {
		entry := store.CacheEntry{Project: d.project, Trust: d.run.Trust, Key: c.Key, Trees: make([]forge.TreeRef, len(c.Paths))}
		for k := range c.Paths {
			entry.Trees[k] = left.outputs[cacheOutput(i, k)]
			entry.Bytes += entry.Trees[k].Bytes
		}
		if entry.Bytes > 0 {
			made = append(made, entry)
		}
	}
	if len(made) > 0 {
		err = d.c.store.Update(d.ctx, store.ClassRest, func(tx *store.Tx) error {
			for _, entry := range made {
				if err := tx.PutCache(entry); err != nil {
					return err
				}
			}
			return nil
		})
	}
	d.cached[j.ID] = err == nil
	return err
}
