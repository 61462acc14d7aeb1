package secrets_test

import (
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/secrets"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

// canary is a value that must turn up nowhere.
const canary = "canary-7f3a91-value"

// world is a daemon's secrets in a folder.
type world struct {
	t     *testing.T
	dir   string
	store *store.Store
	log   strings.Builder
	*secrets.Secrets
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir()}
	var err error
	w.store, err = store.Open(t.Context(), w.dir, store.Options{})
	w.must(err)
	t.Cleanup(func() { w.must(w.store.Close()) })
	w.restart()
	return w
}

// restart forgets what a process knows.
func (w *world) restart() {
	w.Secrets = secrets.New(w.store, w.key(), slog.New(slog.NewTextHandler(&w.log, nil)))
}

func (w *world) key() string { return filepath.Join(w.dir, "secret.key") }

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) set(project forge.ProjectName, name, value string) forge.SecretRef {
	w.t.Helper()
	made, err := w.Set(w.t.Context(), project, name, forge.NewSecret([]byte(value)), "ann")
	w.must(err)
	return forge.SecretRef{Name: name, Version: made.Version}
}

// lease is an attempt that runs, and the fence of its agent.
type lease struct {
	authority.Fence
	of forge.AttemptContext
}

// running makes an attempt of a job that names secrets, accepted by a runner of its own.
func (w *world) running(project forge.ProjectName, trust forge.TrustClass, refs ...string) lease {
	w.t.Helper()
	spec := forge.DefaultJobSpec()
	spec.Project, spec.Job, spec.Constraints.Trust = project, "build", trust
	spec.Steps = []forge.Step{{Argv: []string{"true"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	for _, text := range refs {
		ref, err := forge.ParseSecretRef(text)
		w.must(err)
		spec.Secrets = append(spec.Secrets, forge.SecretUse{File: strings.NewReplacer("/", "-", "@", "-").Replace(text), Ref: ref})
	}
	b, err := jobspec.Encode(spec)
	w.must(err)
	l := lease{Fence: authority.Fence{Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](), TransportSeq: 1}}
	run, job, id := ident.New[forge.RunID](), ident.New[forge.JobID](), forge.SpecID(b)
	w.must(w.store.Update(w.t.Context(), store.ClassState, func(tx *store.Tx) error {
		if err := tx.CreateRunner(store.NewRunner{ID: l.Runner, Name: l.Runner.String(), Pool: "default", Trust: trust, Slots: 1}); err != nil {
			return err
		}
		_, _, err := tx.CreateRun(store.NewRun{ID: run, Project: project, Trust: trust, Jobs: []store.NewJob{{
			ID: job, Key: "build", Draft: id, Bytes: b,
			Terms: store.Terms{HardTTL: time.Minute, MaxLifetime: time.Hour, Retry: spec.Retry},
		}}})
		if err != nil {
			return err
		}
		return tx.Settle(run, func(store.Run, []store.Job) store.Settlement {
			return store.Settlement{Plan: []store.Planned{{Plan: authority.Plan{Job: job, Spec: id}}}}
		})
	}))
	w.rule(&authority.Register{Runner: l.Runner, Session: l.Session, StartCounter: 1, TransportSeq: 1, Version: "1.0"})
	l.of = w.rule(&authority.Offer{Fence: l.Fence, Job: job, Attempt: ident.New[forge.AttemptID](), Lease: ident.New[forge.LeaseID]()}).Context
	return l
}

// accept has the lease of an attempt accepted.
func (w *world) accept(l lease) lease {
	w.t.Helper()
	if !w.rule(&authority.Claim{Fence: l.Fence, Context: l.of, Phase: forge.AttemptOffered}).Done {
		w.t.Fatal("the lease was not accepted")
	}
	return l
}

// end ends the lease.
func (w *world) end(l lease) {
	w.t.Helper()
	if !w.rule(&authority.Reject{Fence: l.Fence, Context: l.of, Reason: forge.RejectPreparation}).Done {
		w.t.Fatal("the lease did not end")
	}
}

func (w *world) rule(cmd authority.Command) authority.Answer {
	w.t.Helper()
	answer, err := w.store.Do(w.t.Context(), store.ClassState, cmd)
	w.must(err)
	return answer
}

// get is what an attempt gets for a reference: the value and its version.
func (w *world) get(of forge.AttemptContext, text string) (value, version string) {
	w.t.Helper()
	ref, err := forge.ParseSecretRef(text)
	w.must(err)
	secret, given, err := w.Deliver(w.t.Context(), of, ref)
	w.must(err)
	return string(secret.Reveal()), given.String()
}

// denied checks that an attempt gets nothing, and that the daemon's log says why.
func (w *world) denied(of forge.AttemptContext, name, why string) {
	w.t.Helper()
	w.log.Reset()
	value, _, err := w.Deliver(w.t.Context(), of, forge.SecretRef{Name: name})
	if !errors.Is(err, secrets.ErrNone) || len(value.Reveal()) > 0 {
		w.t.Errorf("%s was given: %v", name, err)
	}
	if !strings.Contains(w.log.String(), why) || strings.Contains(w.log.String(), canary) {
		w.t.Errorf("the log does not say %q: %s", why, w.log.String())
	}
	for _, e := range w.audits() {
		if e.Kind == "secret.deliver" {
			w.t.Errorf("a delivery is on record: %+v", e)
		}
	}
}

func (w *world) audits() (events []store.AuditEvent) {
	w.t.Helper()
	w.must(w.store.View(w.t.Context(), func(v *store.View) (err error) {
		events, _, err = v.Audits(0, 100)
		return err
	}))
	return events
}
