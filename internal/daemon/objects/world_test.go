package objects_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a daemon's store of objects with its rows.
type world struct {
	t    *testing.T
	dir  string
	rows *store.Store
	*objects.Objects
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, dir: castest.Folder(t)}
	rows, err := store.Open(t.Context(), castest.Folder(t), store.Options{})
	w.must(err)
	w.rows = rows
	w.open()
	t.Cleanup(func() {
		w.must(w.Objects.Close())
		w.must(rows.Close())
	})
	return w
}

func (w *world) open() {
	w.t.Helper()
	o, err := objects.Open(w.dir, objects.Options{MinFree: 1}, w.rows)
	w.must(err)
	w.Objects = o
}

// restart is a new process on the same folder and database.
func (w *world) restart() {
	w.t.Helper()
	w.must(w.Objects.Close())
	w.open()
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// lease is an attempt that runs, and the fence of its agent.
type lease struct {
	authority.Fence
	of forge.AttemptContext
}

// running makes an attempt of a job that changes a good specification, accepted by a runner of its own.
func (w *world) running(project forge.ProjectName, change func(*forge.JobSpec)) lease {
	w.t.Helper()
	spec := forge.DefaultJobSpec()
	spec.Job = "build"
	spec.Steps = []forge.Step{{Argv: []string{"true"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	change(&spec)
	b, err := jobspec.Encode(spec)
	w.must(err)
	l := lease{Fence: authority.Fence{Runner: ident.New[forge.RunnerID](), Session: ident.New[forge.AgentSessionID](), TransportSeq: 1}}
	run, job, id := ident.New[forge.RunID](), ident.New[forge.JobID](), forge.SpecID(b)
	w.must(w.rows.Update(context.Background(), store.ClassState, func(tx *store.Tx) error {
		if err := tx.CreateRunner(store.NewRunner{ID: l.Runner, Name: l.Runner.String(), Pool: "default", Trust: forge.TrustTrusted, Slots: 1}); err != nil {
			return err
		}
		_, _, err := tx.CreateRun(store.NewRun{ID: run, Project: project, Trust: forge.TrustTrusted, Jobs: []store.NewJob{{
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
	if !w.rule(&authority.Claim{Fence: l.Fence, Context: l.of, Phase: forge.AttemptOffered}).Done {
		w.t.Fatal("the lease was not accepted")
	}
	return l
}

func (w *world) rule(cmd authority.Command) authority.Answer {
	w.t.Helper()
	answer, err := w.rows.Do(context.Background(), store.ClassState, cmd)
	w.must(err)
	return answer
}

// end ends a lease.
func (w *world) end(l lease) {
	w.t.Helper()
	if !w.rule(&authority.Reject{Fence: l.Fence, Context: l.of, Reason: forge.RejectPreparation}).Done {
		w.t.Fatal("the lease did not end")
	}
}

func (w *world) scope(l lease) *objects.Scope {
	w.t.Helper()
	s, err := w.Attempt(w.t.Context(), l.of)
	w.must(err)
	return s
}

// output declares one output.
func output(spec *forge.JobSpec) {
	spec.Outputs = []forge.Output{{
		Name: "bin", Base: forge.SourceDir, Patterns: []string{"**"}, When: forge.WhenAlways, MaxBytes: 16 * forge.MiB, MaxFiles: 100,
	}}
}

// input makes a tree the source.
func input(tree forge.TreeRef) func(*forge.JobSpec) {
	return func(spec *forge.JobSpec) {
		spec.Inputs = []forge.Input{{Mount: forge.SourceDir, Tree: tree, Mode: forge.InputReadOnly}}
	}
}

func put(t *testing.T, s cas.Sink, b []byte) digest.Ref {
	t.Helper()
	ref := digest.RefOf(b)
	if err := s.Put(t.Context(), ref, bytes.NewReader(b)); err != nil {
		t.Fatal(err)
	}
	return ref
}
