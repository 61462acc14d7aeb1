package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

const (
	// maxFolders is how many requests may have a folder's object in memory at a time, of up to tree.MaxEncoded.
	maxFolders = 8
	// maxPath bounds the path that is looked up in an artifact, in bytes.
	maxPath = 16 << 10
)

// kept is one thing that an attempt kept.
type kept struct {
	api.Artifact
	ref digest.Ref
}

// keptBy lists what an attempt kept, as its accepted completion says.
func keptBy(v *store.View, a *store.Attempt, j *store.Job) ([]kept, error) {
	if len(a.Outputs) == 0 {
		return nil, nil
	}
	spec, err := specOf(v, j)
	if err != nil {
		return nil, err
	}
	var out []kept
	for i, o := range a.Outputs {
		k := kept{ref: o.Ref, Artifact: api.Artifact{
			ID: a.Authority.ID.String() + "." + strconv.Itoa(i), Project: string(j.Project), Run: j.Run.String(), Job: j.ID.String(),
			JobKey: string(j.Key), Attempt: a.Authority.ID.String(), Number: a.Authority.Number, Tree: o.Tree, Ref: o.Ref.String(),
			CreatedAt: api.TimeOf(a.Ended),
		}}
		if int(o.Output) < len(spec.Outputs) {
			k.Name = spec.Outputs[o.Output].Name
		}
		out = append(out, k)
	}
	return out, nil
}

// listArtifacts lists what a run, a job or an attempt kept: jobs in their order, attempts oldest first. What a run has taken over
// from earlier ones stands before its own.
func (s *Server) listArtifacts(r *http.Request) (any, error) {
	n, err := limit(r)
	if err != nil {
		return nil, err
	}
	var all []kept
	err = s.cfg.Store.View(r.Context(), func(v *store.View) (err error) {
		all, err = keptOf(v, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := api.List[api.Artifact]{Items: []api.Artifact{}}
	if cursor := r.URL.Query().Get("cursor"); cursor != "" {
		i := slices.IndexFunc(all, func(k kept) bool { return k.ID == cursor })
		if i < 0 {
			return nil, api.NewProblem(api.CodeMalformed, "cursor %q is none that was given out", clip(cursor))
		}
		all = all[i+1:]
	}
	if len(all) > n {
		all = all[:n]
		out.Next = all[n-1].ID
	}
	for i := range all {
		if err := s.total(r.Context(), &all[i]); err != nil {
			return nil, err
		}
		out.Items = append(out.Items, all[i].Artifact)
	}
	return out, nil
}

// keptOf reads what the parameters of a request ask for.
func keptOf(v *store.View, r *http.Request) ([]kept, error) {
	query := r.URL.Query()
	run, job, attempt := query.Get("run"), query.Get("job"), query.Get("attempt")
	switch {
	case run != "" && job == "" && attempt == "":
		id, err := lookUp[forge.RunID](v, store.RunIDs, "run", run)
		if err != nil {
			return nil, err
		}
		taken, err := v.Taken(id)
		if err != nil {
			return nil, err
		}
		jobs, err := v.Jobs(id)
		if err != nil {
			return nil, err
		}
		return keptByJobs(v, append(taken, jobs...))
	case job != "" && run == "" && attempt == "":
		id, err := lookUp[forge.JobID](v, store.JobIDs, "job", job)
		if err != nil {
			return nil, err
		}
		one, err := v.Job(id)
		if err != nil {
			return nil, err
		}
		return keptByJobs(v, []store.Job{one})
	case attempt != "" && run == "" && job == "":
		id, err := lookUp[forge.AttemptID](v, store.AttemptIDs, "attempt", attempt)
		if err != nil {
			return nil, err
		}
		return keptByAttempt(v, id)
	}
	return nil, api.NewProblem(api.CodeMalformed, "say whose artifacts: run=, job= or attempt=, one of them")
}

func keptByJobs(v *store.View, jobs []store.Job) (all []kept, err error) {
	for i := range jobs {
		attempts, err := v.Attempts(jobs[i].ID)
		if err != nil {
			return nil, err
		}
		for k := range attempts {
			some, err := keptBy(v, &attempts[k], &jobs[i])
			if err != nil {
				return nil, err
			}
			all = append(all, some...)
		}
	}
	return all, nil
}

func keptByAttempt(v *store.View, id forge.AttemptID) ([]kept, error) {
	a, err := v.Attempt(id)
	if err != nil {
		return nil, err
	}
	job, err := v.Job(a.Authority.Job)
	if err != nil {
		return nil, err
	}
	return keptBy(v, &a, &job)
}

// total fills in what an artifact holds, from its root. One that the store has lost or found damaged stays without.
func (s *Server) total(ctx context.Context, k *kept) error {
	if !k.Tree {
		one := uint64(1)
		k.Files, k.Bytes = &one, &k.ref.Bytes
		return nil
	}
	project, err := s.project(k.Project)
	if err != nil {
		return err
	}
	entries, err := s.folder(ctx, project, k.ref)
	if lost(err) {
		return nil
	}
	if err != nil {
		return err
	}
	t := tree.TotalsOf(entries)
	files, bytes := t.Files, uint64(t.Bytes)
	k.Files, k.Bytes, k.Depth = &files, &bytes, t.Depth
	if t.Hazards != 0 {
		k.Hazards = t.Hazards.String()
	}
	return nil
}

// lost reports whether an error means that an object cannot be had, or is none that it should be.
func lost(err error) bool {
	var corrupt *cas.CorruptError
	var wrong *cas.TreeError
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &corrupt) || errors.As(err, &wrong)
}

// folder reads one folder of a tree.
func (s *Server) folder(ctx context.Context, src cas.Source, ref digest.Ref) ([]tree.Entry, error) {
	if err := s.enter(ctx, s.folders); err != nil {
		return nil, err
	}
	defer func() { <-s.folders }()
	if ref.Bytes > tree.MaxEncoded {
		return nil, &cas.TreeError{Ref: ref, Err: tree.ErrForm}
	}
	data, err := cas.ReadAll(ctx, src, ref, tree.MaxEncoded)
	if err != nil {
		return nil, err
	}
	entries, err := tree.Decode(data)
	if err != nil {
		return nil, &cas.TreeError{Ref: ref, Err: err}
	}
	return entries, nil
}

// artifact finds the one that a request names: ATTEMPT.N, of the attempt's id the first digits.
func (s *Server) artifact(r *http.Request) (k kept, err error) {
	text := r.PathValue("id")
	attempt, place, ok := strings.Cut(text, ".")
	n, err := strconv.ParseUint(place, 10, 16)
	if !ok || err != nil || strconv.FormatUint(n, 10) != place {
		return k, api.NewProblem(api.CodeNotFound, "%q is no id of an artifact: write ATTEMPT.N", clip(text))
	}
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		id, err := lookUp[forge.AttemptID](v, store.AttemptIDs, "attempt", attempt)
		if err != nil {
			return err
		}
		all, err := keptByAttempt(v, id)
		if err == nil && n >= uint64(len(all)) {
			err = api.NewProblem(api.CodeNotFound, "the attempt has no artifact %d", n)
		}
		if err == nil {
			k = all[n]
		}
		return err
	})
	return k, err
}

// getArtifact tells of an artifact and one page of one folder of it.
func (s *Server) getArtifact(r *http.Request) (any, error) {
	k, at, err := s.at(r)
	if err != nil {
		return nil, err
	}
	if err := s.total(r.Context(), &k); err != nil {
		return nil, err
	}
	n, from, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	out := api.ArtifactFolder{Artifact: k.Artifact, Path: at.path, Entries: []api.TreeEntry{}}
	if at.entry.Kind != tree.Folder {
		out.Entries = append(out.Entries, entryOf(&at.entry))
		return out, nil
	}
	entries, err := s.folder(r.Context(), at.project, at.entry.Ref)
	if err != nil {
		return nil, err
	}
	from = min(from, uint64(len(entries)))
	end := min(from+uint64(n), uint64(len(entries))) //nolint:gosec // at most MaxPage
	for i := from; i < end; i++ {
		out.Entries = append(out.Entries, entryOf(&entries[i]))
	}
	if end < uint64(len(entries)) {
		out.Next = strconv.FormatUint(end, 10)
	}
	return out, nil
}

var kinds = map[tree.Kind]string{tree.File: "file", tree.Folder: "folder", tree.Link: "link"}

func entryOf(e *tree.Entry) api.TreeEntry {
	out := api.TreeEntry{Name: e.Name, Kind: kinds[e.Kind], Executable: e.Executable, Target: e.Target}
	switch e.Kind {
	case tree.File:
		out.Ref, out.Bytes = e.Ref.String(), e.Ref.Bytes
	case tree.Folder:
		out.Ref, out.Bytes, out.Files = e.Ref.String(), uint64(e.Totals.Bytes), &e.Totals.Files
	}
	return out
}

// place is something within an artifact.
type place struct {
	project *objects.Project
	path    string
	entry   tree.Entry // of the root: a folder or file whose name is the artifact's
}

// at finds what a request names: the artifact, and what stands at its parameter path. Links are not followed.
func (s *Server) at(r *http.Request) (k kept, p place, err error) {
	if k, err = s.artifact(r); err != nil {
		return k, p, err
	}
	if p.project, err = s.project(k.Project); err != nil {
		return k, p, err
	}
	p.entry = tree.Entry{Name: k.Name, Kind: tree.File, Ref: k.ref}
	if k.Tree {
		p.entry.Kind = tree.Folder
	}
	path := strings.Trim(r.URL.Query().Get("path"), "/")
	if len(path) > maxPath {
		return k, p, api.NewProblem(api.CodeMalformed, "path has more than %d bytes", maxPath)
	}
	if path == "" {
		return k, p, nil
	}
	for name := range strings.SplitSeq(path, "/") {
		if err := s.step(r.Context(), &p, name); err != nil {
			return k, p, err
		}
	}
	return k, p, nil
}

// step goes into a folder.
func (s *Server) step(ctx context.Context, p *place, name string) error {
	none := api.NewProblem(api.CodeNotFound, "the artifact has no %q", clip(join(p.path, name)))
	if p.entry.Kind != tree.Folder {
		return none
	}
	entries, err := s.folder(ctx, p.project, p.entry.Ref)
	if err != nil {
		return err
	}
	i, found := slices.BinarySearchFunc(entries, name, func(e tree.Entry, name string) int { return strings.Compare(e.Name, name) })
	if !found {
		return none
	}
	p.path, p.entry = join(p.path, name), entries[i]
	return nil
}

func join(above, name string) string {
	if above == "" {
		return name
	}
	return above + "/" + name
}

// getContent gives a file of an artifact, or a folder of it as an archive.
func (s *Server) getContent(w http.ResponseWriter, r *http.Request) error {
	k, at, err := s.at(r)
	if err != nil {
		return err
	}
	format := r.URL.Query().Get("format")
	switch {
	case format == "tar":
		return s.sendTar(w, r, &k, &at)
	case format != "":
		return api.NewProblem(api.CodeMalformed, "format %q is not tar", clip(format))
	case at.entry.Kind == tree.Link:
		return api.NewProblem(api.CodeNotFile, "it is a link to %q, and links are not followed", clip(at.entry.Target))
	case at.entry.Kind == tree.Folder:
		return api.NewProblem(api.CodeNotFile, "it is a folder: name a file of it with path=, or ask for format=tar")
	}
	return s.sendObject(w, r, at.project, at.entry.Ref, at.entry.Name)
}
