package control

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/trust"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var policy = forge.DefaultLeasePolicy()

// world is a Control on a real store, with agents that do what the test says.
type world struct {
	*Control
	t       *testing.T
	ctx     context.Context
	store   *store.Store
	places  chan Placement
	objects cas.Store
	now     forge.Instant // of the Control, where still is set
}

func newWorld(t *testing.T) *world {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir(), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	ca, err := trust.NewCA(trust.NewCluster(), time.Now())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ctx: t.Context(), store: s, places: make(chan Placement, 1024)}
	objects, err := disk.Open(t.TempDir(), disk.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.must(objects.Close()) })
	w.objects = objects
	w.Control = New(Config{
		Store: s, Place: func(p Placement) { w.places <- p }, CA: ca, Policy: policy, Trees: allTrees{},
		Objects: func(forge.ProjectName) cas.Store { return objects },
	})
	return w
}

// allTrees takes every tree for one that is there.
type allTrees struct{}

func (allTrees) CheckTree(context.Context, forge.ProjectName, forge.TreeRef) error { return nil }

// run lets the loop run until the test ends.
func (w *world) run() {
	ctx, cancel := context.WithCancel(w.ctx)
	var done sync.WaitGroup
	done.Go(func() { _ = w.Control.Run(ctx) })
	w.t.Cleanup(func() { cancel(); done.Wait() })
}

// still stops the Control's clock.
func (w *world) still() {
	w.now = forge.Instant(time.Hour)
	w.Control.now = func() forge.Instant { return w.now }
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) view(read func(v *store.View) error) {
	w.t.Helper()
	w.must(w.store.View(w.ctx, read))
}

func (w *world) do(cmd authority.Command) authority.Answer {
	w.t.Helper()
	answer, err := w.store.Do(w.ctx, store.ClassLease, cmd)
	w.must(err)
	return answer
}

// hello is the smallest spec.
func hello() forge.JobSpec {
	s := forge.DefaultJobSpec()
	s.Steps = []forge.Step{{Argv: []string{"true"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	s.Sandbox.Kind = forge.SandboxProcess
	return s
}

// submission reads "key[needs]" words, as graph does.
func submission(t testing.TB, text string) Submission {
	s := Submission{Project: forge.DefaultProject, Trust: forge.TrustTrusted, Actor: "tester"}
	jobs, _ := graph(t, text)
	for _, j := range jobs {
		s.Jobs = append(s.Jobs, SubmittedJob{Key: j.Key, Needs: j.Needs, Spec: hello()})
	}
	return s
}

func (w *world) submit(text string) store.Run {
	w.t.Helper()
	run, made, err := w.Submit(w.ctx, submission(w.t, text))
	w.must(err)
	if !made {
		w.t.Fatal("the run was there already")
	}
	return run
}

func (w *world) jobs(run forge.RunID) map[forge.JobKey]store.Job {
	w.t.Helper()
	byKey := map[forge.JobKey]store.Job{}
	w.view(func(v *store.View) error {
		jobs, err := v.Jobs(run)
		for _, j := range jobs {
			byKey[j.Key] = j
		}
		return err
	})
	return byKey
}

func (w *world) runState(id forge.RunID) forge.RunState {
	w.t.Helper()
	var r store.Run
	w.view(func(v *store.View) (err error) { r, err = v.Run(id); return err })
	return r.State
}

// agent is a machine as the store sees it.
type agent struct {
	w     *world
	id    forge.RunnerID
	fence authority.Fence
}

func (w *world) agent(name string, slots int) *agent {
	w.t.Helper()
	a := &agent{w: w, id: ident.New[forge.RunnerID]()}
	caps := forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"},
		Resources: forge.Resources{CPU: 64_000, Memory: 256 * forge.GiB, Disk: forge.TiB, Slots: 64},
		Sandboxes: []forge.Sandbox{{Kind: forge.SandboxNative}, {Kind: forge.SandboxProcess}},
	}
	w.must(w.store.Update(w.ctx, store.ClassState, func(tx *store.Tx) error {
		return errors.Join(
			tx.CreateRunner(store.NewRunner{ID: a.id, Name: name, Pool: forge.DefaultPool, Trust: forge.TrustTrusted, Slots: slots}),
			tx.SetCapabilities(a.id, caps, caps.Digest()),
		)
	}))
	a.fence = authority.Fence{Runner: a.id, Session: ident.New[forge.AgentSessionID](), TransportSeq: 1}
	answer := w.do(&authority.Register{
		Runner: a.id, Session: a.fence.Session, StateFolder: ident.New[forge.StateFolderID](), Boot: ident.New[forge.BootID](),
		StartCounter: 1, TransportSeq: 1,
	})
	if !answer.Done {
		w.t.Fatalf("registering: %+v", answer)
	}
	return a
}

func (a *agent) connect() { a.w.Connected(a.id, a.fence.Session) }

// newWorldAndAgent is a world with one agent that is connected and takes one job at a time.
func newWorldAndAgent(t *testing.T) (*world, *agent) {
	t.Helper()
	w := newWorld(t)
	a := w.agent("a", 1)
	a.connect()
	return w, a
}

// offered waits for the next placement and offers it, as the agents' edge would.
func (w *world) offered(a *agent) forge.AttemptContext {
	w.t.Helper()
	select {
	case p := <-w.places:
		return w.offer(a, p)
	case <-time.After(20 * time.Second):
		w.t.Fatal("nothing was placed")
	}
	panic("unreachable")
}

// taken is the attempt that is offered to an agent next, once that has accepted it.
func (w *world) taken(a *agent) forge.AttemptContext {
	w.t.Helper()
	c := w.offered(a)
	a.accept(c)
	return c
}

func (w *world) offer(a *agent, p Placement) forge.AttemptContext {
	w.t.Helper()
	if p.Runner != a.id {
		w.t.Fatalf("placed on %v", p.Runner)
	}
	answer := w.do(&authority.Offer{Fence: a.fence, Job: p.Job, Attempt: p.Attempt, Lease: p.Lease})
	if !answer.Done {
		w.t.Fatalf("the offer was refused: %+v", answer)
	}
	return answer.Context
}

func (a *agent) accept(c forge.AttemptContext) {
	a.w.t.Helper()
	answer := a.w.do(&authority.Claim{Fence: a.fence, Context: c, Phase: forge.AttemptOffered, Watched: authority.Watched{Lease: c.Lease}})
	if len(answer.Verdicts) != 1 || answer.Verdicts[0].Verdict != forge.VerdictContinue {
		a.w.t.Fatalf("accepting: %+v", answer)
	}
}

// complete ends an attempt that was accepted, with outputs that it has delivered.
func (a *agent) complete(c forge.AttemptContext, r forge.Result, outputs ...forge.OutputRef) {
	a.w.t.Helper()
	a.w.do(&authority.Phase{Fence: a.fence, Context: c, Seq: 1, Phase: forge.AttemptRunning})
	seal := forge.LogSeal{Hash: digest.Of(nil)}
	var log authority.Log
	a.w.view(func(v *store.View) error {
		attempt, err := v.Attempt(c.Attempt)
		log = attempt.Log
		return err
	})
	seal.Hash = log.Hash
	if answer := a.w.do(&authority.SealLog{Fence: a.fence, Context: c, Seal: seal}); !answer.Done {
		a.w.t.Fatalf("sealing: %+v", answer)
	}
	m := &forge.Completion{Context: c, Message: ident.New[forge.MessageID](), Result: r, Capture: forge.Succeeded, Log: seal, Outputs: outputs}
	a.w.must(a.w.store.Update(a.w.ctx, store.ClassState, func(tx *store.Tx) error {
		for _, o := range outputs {
			if err := tx.RecordUpload(c.Attempt, o, true); err != nil {
				return err
			}
		}
		return nil
	}))
	m.CancelSeen = r.Class == forge.Cancelled
	m.Hash = m.ResultHash()
	if answer := a.w.do(&authority.Complete{Fence: a.fence, Completion: m}); answer.Completion != forge.CompletionAccepted {
		a.w.t.Fatalf("completing: %+v", answer)
	}
}

// work carries out one placement to its end.
func (a *agent) work(r forge.Result) {
	a.w.t.Helper()
	c := a.w.offered(a)
	a.accept(c)
	a.complete(c, r)
}

// until waits for something in the store, woken by its changes.
func (w *world) until(what string, done func() bool) {
	w.t.Helper()
	changes := w.store.Subscribe()
	defer changes.Close()
	limit := time.After(20 * time.Second)
	for !done() {
		select {
		case <-changes.C():
		case <-limit:
			w.t.Fatal("never: " + what)
		}
	}
}

func (w *world) ended(run store.Run, want forge.RunState) {
	w.t.Helper()
	w.until(fmt.Sprint("the run is ", want), func() bool { return w.runState(run.ID) == want })
}
