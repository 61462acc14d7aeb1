package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

// MaxInlineSpec bounds the bytes of an encoded specification: it travels within the offer, until objects can be fetched.
const MaxInlineSpec = 48 << 10

// MaxRunName bounds the bytes of a run's title.
const MaxRunName = 256

// Submission is a run to be made.
type Submission struct {
	Project  forge.ProjectName
	Name     string           // a title for people, or empty
	Trust    forge.TrustClass // of whoever submits; each job's Constraints.Trust is set to it
	Key      string           // idempotency key, or empty
	Actor    string
	Jobs     []SubmittedJob
	Pipeline *Pipeline // instead of Jobs

	retryOf forge.RunID // the run of which it tries jobs again
	taken   []forge.JobID
}

// SubmittedJob is one job of it. Project, Job and Leg of its spec are set from here.
type SubmittedJob struct {
	Key   forge.JobKey
	Leg   forge.Leg
	Needs []forge.JobNeed
	Spec  forge.JobSpec
}

// Unsupported is what a submission asks for that this version cannot do, each with its place.
type Unsupported forge.Problems

func (u Unsupported) Error() string { return "not supported yet: " + forge.Problems(u).Error() }

// ErrKeyReused is for an idempotency key that came with another submission before.
var ErrKeyReused = errors.New("this idempotency key was used for another run")

// Submit stores a run with all of its jobs and settles it, in one transaction: when it returns, the jobs without needs
// are ready. Nothing is stored of a submission that is refused, with forge.Problems or Unsupported. A second submission
// of the same with the same key returns the first one's run, with made false. After store.ErrUnknown the same submission
// with the same key can be made again.
func (c *Control) Submit(ctx context.Context, s Submission) (run store.Run, made bool, err error) {
	n, err := c.newRun(ctx, s)
	if err != nil {
		return store.Run{}, false, err
	}
	if err := c.checkTrees(ctx, &s); err != nil {
		return store.Run{}, false, err
	}
	var wanted []wantedSecret
	for i := range s.Jobs {
		for k, use := range s.Jobs[i].Spec.Secrets {
			wanted = append(wanted, wantedSecret{fmt.Sprintf("jobs[%d].spec.secrets[%d].ref", i, k), use.Ref})
		}
	}
	if err := c.haveSecrets(ctx, s.Project, wanted); err != nil {
		return store.Run{}, false, err
	}
	err = c.store.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		if run, made, err = tx.CreateRun(n); err != nil {
			return err
		}
		if !made {
			return same(tx, &run, &n)
		}
		if err := settleIn(tx, run.ID); err != nil {
			return err
		}
		run, err = tx.Run(run.ID)
		return err
	})
	if err != nil {
		return store.Run{}, false, err
	}
	return run, made, nil
}

// same checks that a run has exactly these jobs, and was planned from the same, if it was planned. Who has another trust does not get
// the run of whoever was first with a key.
func same(tx *store.Tx, run *store.Run, n *store.NewRun) error {
	if run.RetryOf != n.RetryOf || run.Trust != n.Trust {
		return ErrKeyReused
	}
	have, err := tx.Jobs(run.ID)
	if err != nil {
		return err
	}
	from, err := tx.Origin(run.ID)
	switch planned := n.Origin != nil; {
	case errors.Is(err, store.ErrNotFound):
		if planned {
			return ErrKeyReused
		}
	case err != nil:
		return err
	case !planned || !bytes.Equal(from.Pipeline, n.Origin.Pipeline) || !bytes.Equal(from.Facts, n.Origin.Facts):
		return ErrKeyReused
	}
	same := slices.EqualFunc(have, n.Jobs, func(a store.Job, b store.NewJob) bool {
		return a.Key == b.Key && a.Leg.String() == b.Leg.String() && slices.Equal(a.Needs, b.Needs) && a.Draft == b.Draft
	})
	if !same {
		return ErrKeyReused
	}
	return nil
}

// newRun checks a submission and encodes its specifications.
func (c *Control) newRun(ctx context.Context, s Submission) (store.NewRun, error) {
	n := store.NewRun{
		ID: ident.New[forge.RunID](), Project: s.Project, Name: s.Name, Trust: s.Trust, Key: s.Key, Actor: s.Actor,
		RetryOf: s.retryOf, Taken: s.taken,
	}
	if !validName(s.Name) {
		return store.NewRun{}, forge.Problems{{Path: "name", What: fmt.Sprintf("is not one line of at most %d bytes", MaxRunName)}}
	}
	if s.Pipeline != nil {
		if len(s.Jobs) > 0 {
			return store.NewRun{}, forge.Problems{{Path: "jobs", What: "cannot stand beside a pipeline"}}
		}
		if err := s.Project.Validate(); err != nil {
			return store.NewRun{}, err
		}
		err := c.planRun(ctx, &s, &n)
		return n, err
	}
	if err := s.graph(n.ID); err != nil {
		return store.NewRun{}, err
	}
	var wrong, early forge.Problems
	for i := range s.Jobs {
		j := &s.Jobs[i]
		spec := j.Spec
		spec.Project, spec.Job, spec.Leg, spec.Constraints.Trust = s.Project, j.Key, j.Leg, s.Trust
		at := "jobs[" + strconv.Itoa(i) + "].spec"
		early = append(early, below(at, tooEarly(&spec))...)
		bytes, err := jobspec.Encode(spec)
		var found forge.Problems
		switch {
		case errors.As(err, &found):
			wrong = append(wrong, below(at, found)...)
			continue
		case errors.Is(err, jobspec.ErrTooLarge):
			wrong = append(wrong, forge.Problem{Path: at, What: fmt.Sprintf("is larger than %d bytes when it is encoded", forge.MaxSpecBytes)})
			continue
		case err != nil:
			return store.NewRun{}, fmt.Errorf("encode %s: %w", at, err)
		case len(bytes) > MaxInlineSpec:
			early = append(early, forge.Problem{Path: at, What: fmt.Sprintf(
				"has %d bytes when it is encoded, more than the %d that can travel today; put long scripts into files of the source", len(bytes), MaxInlineSpec)})
		}
		n.Jobs = append(n.Jobs, store.NewJob{
			ID: ident.New[forge.JobID](), Key: j.Key, Leg: j.Leg, Needs: j.Needs, Draft: jobspec.ID(bytes), Bytes: bytes,
			Terms: c.terms(&spec),
		})
	}
	if len(wrong) > 0 {
		return store.NewRun{}, wrong
	}
	if len(early) > 0 {
		return store.NewRun{}, Unsupported(early)
	}
	return n, nil
}

// validName reports whether a title can be shown on one line.
func validName(name string) bool {
	return len(name) <= MaxRunName && utf8.ValidString(name) && !strings.ContainsFunc(name, unicode.IsControl)
}

// graph checks project and jobs together, with ids that only serve the check.
func (s *Submission) graph(id forge.RunID) error {
	if err := (forge.Run{ID: id, Project: s.Project, State: forge.RunPlanned, Trust: s.Trust}).Validate(); err != nil {
		return err
	}
	jobs := make([]forge.Job, len(s.Jobs))
	for i, j := range s.Jobs {
		jobs[i] = forge.Job{ID: ident.New[forge.JobID](), Run: id, Key: j.Key, Leg: j.Leg, Needs: j.Needs, State: forge.JobWaiting}
	}
	return forge.ValidateGraph(jobs)
}

// Connectivity is how long a job outlives its connection whose author does not say.
func (c *Control) Connectivity() forge.ConnectivityPolicy { return c.policy.Connectivity() }

// terms is what a spec says about leases on its job.
func (c *Control) terms(s *forge.JobSpec) store.Terms {
	return store.Terms{
		HardTTL: c.policy.HardTTL(s.Connectivity.Mode, s.Connectivity.Extra), MaxLifetime: s.MaxLifetime(), Retry: s.Retry,
	}
}

// tooEarly lists what a spec asks for that nothing carries out yet. A job that is accepted must never find that out on
// its runner.
func tooEarly(s *forge.JobSpec) forge.Problems {
	var found forge.Problems
	if len(s.Caches) > 0 {
		found = append(found, forge.Problem{Path: "caches", What: "cannot be used yet; leave them out"})
	}
	if s.Connectivity.Mode == forge.OfflineAuthorized {
		found = append(found, forge.Problem{Path: "connectivity.mode", What: "offline needs the consent of a pool, which cannot be given yet; use grace"})
	}
	return found
}

// checkTrees checks that the project has every tree that the jobs begin with: nobody may name what they do not hold, and a
// job must not fail later for what can be told now.
func (c *Control) checkTrees(ctx context.Context, s *Submission) error {
	var wrong forge.Problems
	checked := map[forge.TreeRef]error{}
	for i := range s.Jobs {
		for k, in := range s.Jobs[i].Spec.Inputs {
			err, done := checked[in.Tree]
			if !done {
				err = c.checkTree(ctx, s.Project, in.Tree)
				checked[in.Tree] = err
			}
			bad, err := unusable(fmt.Sprintf("jobs[%d].spec.inputs[%d].tree", i, k), err)
			if err != nil {
				return err
			}
			wrong = append(wrong, bad...)
		}
	}
	if len(wrong) > 0 {
		return wrong
	}
	return nil
}

// wantedSecret is a secret that a submission names, and where.
type wantedSecret struct {
	at  string
	ref forge.SecretRef
}

// haveSecrets checks that the project has every secret that is named. One that is removed later fails its job.
func (c *Control) haveSecrets(ctx context.Context, project forge.ProjectName, wanted []wantedSecret) error {
	if len(wanted) == 0 {
		return nil
	}
	var wrong forge.Problems
	err := c.store.View(ctx, func(v *store.View) error {
		for _, w := range wanted {
			if _, err := v.Secret(project, w.ref); errors.Is(err, store.ErrNotFound) {
				wrong = append(wrong, forge.Problem{Path: w.at, What: fmt.Sprintf("there is no secret %v in the project; set it with: forgeyard secret set %s", w.ref, w.ref.Name)})
			} else if err != nil {
				return err
			}
		}
		return nil
	})
	if err == nil && len(wrong) > 0 {
		return wrong
	}
	return err
}

// haveTree checks one tree of a submission; nil is one that it does not name.
func (c *Control) haveTree(ctx context.Context, project forge.ProjectName, at string, t *forge.TreeRef) error {
	if t == nil {
		return nil
	}
	if err := t.Validate(); err != nil {
		return forge.Problems{{Path: at, What: err.Error()}}
	}
	wrong, err := unusable(at, c.checkTree(ctx, project, *t))
	if err == nil && len(wrong) > 0 {
		return wrong
	}
	return err
}

// unusable tells the problem of a tree, which its submitter can mend, from an error of ours.
func unusable(at string, err error) (forge.Problems, error) {
	var missing *objects.MissingError
	var lies *cas.TreeError
	switch {
	case err == nil:
		return nil, nil
	case errors.As(err, &missing), errors.As(err, &lies):
		return forge.Problems{{Path: at, What: "cannot be used: " + err.Error()}}, nil
	default:
		return nil, fmt.Errorf("check %s: %w", at, err)
	}
}

func (c *Control) checkTree(ctx context.Context, project forge.ProjectName, t forge.TreeRef) error {
	if c.trees == nil {
		return &objects.MissingError{Some: []digest.Ref{t.Root}, Count: 1}
	}
	return c.trees.CheckTree(ctx, project, t)
}

// below puts problems under a place.
func below(at string, found forge.Problems) forge.Problems {
	out := make(forge.Problems, len(found))
	for i, p := range found {
		out[i] = forge.Problem{Path: at, What: p.What}
		if p.Path != "" {
			out[i].Path += "." + p.Path
		}
	}
	return out
}
