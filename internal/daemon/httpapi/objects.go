package httpapi

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// project returns what a project holds, by its name as it was written; the default project where none was.
func (s *Server) project(name string) (*objects.Project, error) {
	if s.cfg.Objects == nil {
		return nil, api.NewProblem(api.CodeUnavailable, "this daemon keeps no objects")
	}
	if name == "" {
		name = string(forge.DefaultProject)
	}
	// There is no row of projects: any good name is one, and what nobody has put there is missing.
	if err := forge.ProjectName(name).Validate(); err != nil {
		return nil, api.NewProblem(api.CodeMalformed, "project %q: %v", clip(name), err)
	}
	return s.cfg.Objects.Project(forge.ProjectName(name)), nil
}

func readRef(text string) (digest.Ref, error) {
	ref, err := digest.ParseRef(text)
	if err != nil {
		return ref, api.NewProblem(api.CodeMalformed, "%q names no object: write b3:, 64 hexadecimal digits, a colon and the size", clip(text))
	}
	return ref, nil
}

// missing tells which objects a project has not got, or whether it has a tree.
func (s *Server) missing(r *http.Request) (any, error) {
	var request api.MissingRequest
	if err := decode(r, &request); err != nil {
		return nil, err
	}
	project, err := s.project(request.Project)
	if err != nil {
		return nil, err
	}
	if request.Tree != nil {
		if len(request.Refs) > 0 {
			return nil, api.NewProblem(api.CodeMalformed, "ask about refs or about a tree, not about both at once")
		}
		return s.hasTree(r.Context(), request.Project, request.Tree)
	}
	if len(request.Refs) > api.MaxMissing {
		return nil, api.NewProblem(api.CodeTooLarge, "refs has %d items, at most %d", len(request.Refs), api.MaxMissing)
	}
	refs := make([]digest.Ref, len(request.Refs))
	for i, text := range request.Refs {
		if refs[i], err = readRef(text); err != nil {
			return nil, err
		}
	}
	refs, err = project.Missing(r.Context(), refs)
	out := api.MissingAnswer{Missing: []string{}}
	for _, ref := range refs {
		out.Missing = append(out.Missing, ref.String())
	}
	return out, err
}

// hasTree tells whether a project has a tree with all below it.
func (s *Server) hasTree(ctx context.Context, project string, t *api.Tree) (any, error) {
	if project == "" {
		project = string(forge.DefaultProject)
	}
	root, err := readRef(t.Root)
	if err != nil {
		return nil, err
	}
	tree := forge.TreeRef{Root: root, Files: t.Files, Bytes: forge.Bytes(t.Bytes), Depth: t.Depth}
	err = s.cfg.Objects.CheckTree(ctx, forge.ProjectName(project), tree)
	complete := err == nil
	var wrong *cas.TreeError
	if errors.Is(err, cas.ErrNotFound) || errors.As(err, &wrong) {
		err = nil
	}
	return api.MissingAnswer{Missing: []string{}, Complete: &complete}, err
}

// headObject tells whether an object is there, and how much of one that is not.
func (s *Server) headObject(w http.ResponseWriter, r *http.Request) error {
	project, ref, err := s.named(r)
	if err != nil {
		return err
	}
	missing, err := project.Missing(r.Context(), []digest.Ref{ref})
	if err != nil {
		return err
	}
	if len(missing) == 0 {
		uploadHeaders(w, ref.Bytes, true)
		w.Header().Set("Content-Type", api.TypeRawLog)
		w.Header().Set("Content-Length", strconv.FormatUint(ref.Bytes, 10))
		w.Header().Set("Etag", strconv.Quote(ref.String()))
		w.WriteHeader(http.StatusOK)
		return nil
	}
	held := uint64(0)
	if ref.Bytes > api.MaxBatchObject {
		part, err := project.Part(r.Context(), ref, nil)
		if err != nil {
			return err
		}
		held = part.Held()
		if err := part.Close(); err != nil {
			return err
		}
	}
	uploadHeaders(w, held, false)
	return api.NewProblem(api.CodeNotFound, "there is no such object")
}

func (s *Server) named(r *http.Request) (*objects.Project, digest.Ref, error) {
	ref, err := readRef(r.PathValue("ref"))
	if err != nil {
		return nil, ref, err
	}
	project, err := s.project(r.URL.Query().Get("project"))
	return project, ref, err
}

func uploadHeaders(w http.ResponseWriter, offset uint64, complete bool) {
	w.Header().Set(api.HeaderUploadOffset, strconv.FormatUint(offset, 10))
	w.Header().Set(api.HeaderUploadComplete, map[bool]string{true: "?1", false: "?0"}[complete])
}

// putObject stores an object, or some more of one: see docs/objects.md.
func (s *Server) putObject(w http.ResponseWriter, r *http.Request, in *intake) error {
	project, ref, err := s.named(r)
	if err != nil {
		return err
	}
	offset, err := uploadOffset(r)
	if err != nil {
		return err
	}
	if offset > ref.Bytes {
		return api.NewProblem(api.CodeMalformed, "%s %d is behind the end of the object", api.HeaderUploadOffset, offset)
	}
	state := api.Upload{Ref: ref.String(), Offset: ref.Bytes, Complete: true}
	if ref.Bytes <= api.MaxBatchObject && offset == 0 {
		err = project.Put(r.Context(), ref, in)
	} else {
		state.Offset, state.Complete, err = s.putPart(w, r, in, project, ref, offset)
	}
	if err != nil {
		return err
	}
	uploadHeaders(w, state.Offset, state.Complete)
	status := http.StatusAccepted
	if state.Complete {
		status = http.StatusOK
	}
	s.reply(w, r, status, state)
	return nil
}

func uploadOffset(r *http.Request) (uint64, error) {
	text := r.Header.Get(api.HeaderUploadOffset)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return 0, api.NewProblem(api.CodeMalformed, "%s %q is no number", api.HeaderUploadOffset, clip(text))
	}
	return n, nil
}

// putPart takes what a body brings of a large object. What has come is kept, however the body ends.
func (s *Server) putPart(w http.ResponseWriter, r *http.Request, in *intake, project *objects.Project, ref digest.Ref, offset uint64) (held uint64, complete bool, err error) {
	part, err := project.Part(r.Context(), ref, in.yield)
	if errors.Is(err, remote.ErrPresent) {
		return ref.Bytes, true, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, part.Close()) }()
	if held = part.Held(); held != offset {
		uploadHeaders(w, held, false)
		return held, false, api.NewProblem(api.CodeOffset, "the next byte to send is that at %d", held)
	}
	_, err = io.CopyBuffer(onlyWriter{part}, in, make([]byte, copyBytes))
	if held = part.Held(); held == ref.Bytes && err == nil {
		return held, true, part.Commit(context.WithoutCancel(r.Context()))
	}
	if err != nil {
		uploadHeaders(w, held, false)
	}
	return held, false, err
}

type onlyWriter struct{ io.Writer }

// statObjects tells what the store has.
func (s *Server) statObjects(r *http.Request) (any, error) {
	if _, err := s.project(""); err != nil {
		return nil, err
	}
	stat, err := s.cfg.Objects.Stat(r.Context())
	return api.ObjectStat{
		Objects: stat.Objects, Bytes: uint64(stat.Bytes), Arriving: uint64(stat.Parts), Quarantined: stat.Quarantined, Held: stat.Held,
		Free: uint64(stat.Room.Free), KeptFree: uint64(stat.Room.MinFree), Low: stat.Room.Low, Full: stat.Room.Full,
	}, err
}

// explainObject tells why an object is kept.
func (s *Server) explainObject(r *http.Request) (any, error) {
	_, ref, err := s.named(r)
	if err != nil {
		return nil, err
	}
	e, err := s.cfg.Objects.Explain(r.Context(), ref)
	if err != nil {
		return nil, err
	}
	if !e.OnDisk && len(e.Holders)+len(e.Uses) == 0 {
		return nil, api.NewProblem(api.CodeNotFound, "nothing is known of such an object")
	}
	out := api.ObjectExplanation{Ref: ref.String(), OnDisk: e.OnDisk}
	for _, h := range e.Holders {
		out.Holders = append(out.Holders, api.ObjectHolder{
			Project: string(h.Project), AddedAt: api.TimeOf(h.Added), TouchedAt: api.TimeOf(h.Touched),
		})
	}
	for _, u := range e.Uses {
		out.Uses = append(out.Uses, api.ObjectUse{
			Project: string(u.Project), Run: u.Run.String(), Job: u.Job.String(), Attempt: u.Attempt.String(), Output: u.Output.Output,
		})
	}
	return out, nil
}

// verifyObjects looks at every object, and tells what is wrong as an event stream.
func (s *Server) verifyObjects(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.project(""); err != nil {
		return err
	}
	deep, err := flag(r, "deep")
	if err != nil {
		return err
	}
	select { // it reads the whole disk: once at a time
	case s.verifying <- struct{}{}:
		defer func() { <-s.verifying }()
	default:
		return api.NewProblem(api.CodeConflict, "a verification is under way")
	}
	e := newEvents(w, api.TypeEvents)
	return e.alive(r.Context(), func(ctx context.Context) error {
		told := 0
		report, err := s.cfg.Objects.Verify(ctx, deep, func(f disk.Finding) error {
			if told++; told > api.MaxFindings {
				return nil
			}
			out := api.ObjectFinding{Path: f.Path, What: f.Err.Error()}
			if !f.Ref.IsZero() {
				out.Ref = f.Ref.String()
			}
			return e.send(0, api.EventFinding, out)
		})
		end := api.ObjectReport{Objects: report.Objects, Bytes: uint64(report.Bytes), Findings: report.Findings}
		if err != nil {
			end.Problem = "it could not go on; the daemon's log says more"
			s.log.Error("a verification of the store ended early", "error", err)
		}
		return e.send(0, api.EventEnd, end)
	})
}
