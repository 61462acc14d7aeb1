package authority

import (
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// agent is one agent process with its newest connection.
type agent struct {
	w       *world
	runner  forge.RunnerID
	session forge.AgentSessionID
	folder  forge.StateFolderID
	boot    forge.BootID
	start   uint64
	seq     uint64
}

// runner makes a runner and registers its first process.
func (w *world) runner(slots int) *agent {
	w.t.Helper()
	a := &agent{
		w: w, runner: forge.RunnerID{ULID: w.id()}, session: forge.AgentSessionID{ULID: w.id()},
		folder: forge.StateFolderID{ULID: w.id()}, boot: forge.BootID{ULID: w.id()}, start: 1,
	}
	w.rows.Runners[a.runner] = Runner{ID: a.runner, Slots: slots}
	w.rows.Sessions[a.runner] = Session{Runner: a.runner}
	w.must(a.connect(), "register")
	return a
}

func (a *agent) fence() Fence {
	return Fence{Runner: a.runner, Session: a.session, TransportSeq: a.seq}
}

// register is what the process says on its connection.
func (a *agent) register() *Register {
	return &Register{
		Runner: a.runner, Session: a.session, StateFolder: a.folder, Boot: a.boot, StartCounter: a.start, TransportSeq: a.seq,
		Seen: a.w.watch.Still(a.w.now, a.runner), Patience: a.w.watch.Patience(a.runner),
	}
}

// connect opens the next connection and registers on it.
func (a *agent) connect() Answer {
	a.w.t.Helper()
	a.seq++
	return a.w.run(a.register())
}

// restarted is the next process on the same folder. It has not registered yet.
func (a *agent) restarted() *agent {
	next := *a
	next.session, next.start, next.seq = forge.AgentSessionID{ULID: a.w.id()}, a.start+1, 0
	return &next
}

// rebooted is the next process after the host was started again.
func (a *agent) rebooted() *agent {
	next := a.restarted()
	next.boot = forge.BootID{ULID: a.w.id()}
	return next
}

// elsewhere is a process with the runner's credential on another folder: a copy, a restored backup, a thief.
func (a *agent) elsewhere() *agent {
	next := a.rebooted()
	next.folder, next.start = forge.StateFolderID{ULID: a.w.id()}, 1
	return next
}

// before returns the process as it spoke on its previous connection.
func (a *agent) before() *agent {
	old := *a
	old.seq--
	return &old
}

// must fails the test where a step of a story did not have its effect.
func (w *world) must(answer Answer, step string) {
	w.t.Helper()
	if !answer.Done {
		w.t.Fatalf("%s had no effect: %+v", step, answer)
	}
}

// unchanged runs part of a story and fails the test if it changed any row.
func (w *world) unchanged(part func()) {
	w.t.Helper()
	before := w.rows.clone()
	part()
	if diff := cmp.Diff(before, w.rows); diff != "" {
		w.t.Errorf("rows changed (-before +after):\n%s", diff)
	}
}

// job makes a ready job that is tried again under retry.
func (w *world) job(retry forge.RetryPolicy) forge.JobID {
	id := forge.JobID{ULID: w.id()}
	w.rows.Jobs[id] = Job{
		ID: id, State: forge.JobReady, Spec: forge.SpecID(id.ULID[:]), HardTTL: hardTTL, MaxLifetime: maxLifetime, Retry: &retry,
	}
	return id
}

// anyJob makes a ready job with the default number of retries.
func (w *world) anyJob() forge.JobID { return w.job(forge.RetryPolicy{Infra: 2}) }

func (a *agent) offered(job forge.JobID) *Offer {
	return &Offer{
		Fence: a.fence(), Job: job, Attempt: forge.AttemptID{ULID: a.w.id()}, Lease: forge.LeaseID{ULID: a.w.id()},
	}
}

// offer gives a job to an agent as an offer.
func (w *world) offer(a *agent, job forge.JobID) forge.AttemptContext {
	w.t.Helper()
	answer := w.run(a.offered(job))
	w.must(answer, "offer")
	return answer.Context
}

// claim presents a lease in a phase, as an item of a resync; in phase Offered, as an acceptance.
func (a *agent) claim(c forge.AttemptContext, phase forge.AttemptState) Answer {
	a.w.t.Helper()
	answer := a.w.run(&Claim{
		Fence: a.fence(), Context: c, Phase: phase, EventSeq: uint64(phase), Watched: a.w.watch.Lease(a.w.now, c.Lease),
	})
	if len(answer.Verdicts) != 1 {
		a.w.t.Fatalf("a claim has %d verdicts: %+v", len(answer.Verdicts), answer)
	}
	return answer
}

func (a *agent) accept(c forge.AttemptContext) Answer {
	a.w.t.Helper()
	return a.claim(c, forge.AttemptOffered)
}

// hold offers a job to an agent, which accepts it.
func (a *agent) hold(job forge.JobID) forge.AttemptContext {
	a.w.t.Helper()
	c := a.w.offer(a, job)
	a.w.must(a.accept(c), "accept")
	return c
}

// runs brings a held attempt into a phase.
func (a *agent) runs(c forge.AttemptContext, phase forge.AttemptState) {
	a.w.t.Helper()
	a.w.must(a.w.run(&Phase{Fence: a.fence(), Context: c, Seq: uint64(phase), Phase: phase}), "phase")
}

// beat is a heartbeat that names leases.
func (a *agent) beat(held ...forge.AttemptContext) Answer {
	a.w.t.Helper()
	cmd := &Heartbeat{Fence: a.fence()}
	for _, c := range held {
		cmd.Leases = append(cmd.Leases, c.Lease)
	}
	slices.SortFunc(cmd.Leases, func(a, b forge.LeaseID) int { return a.Compare(b.ULID) })
	for _, id := range cmd.Leases {
		cmd.Watched = append(cmd.Watched, a.w.watch.Lease(a.w.now, id))
	}
	return a.w.run(cmd)
}

// renewed is the verdict on one lease of a heartbeat that names only it.
func (a *agent) renewed(c forge.AttemptContext) forge.LeaseVerdict {
	a.w.t.Helper()
	answer := a.beat(c)
	if len(answer.Verdicts) != 1 {
		a.w.t.Fatalf("a heartbeat of one lease has %d verdicts: %+v", len(answer.Verdicts), answer)
	}
	return answer.Verdicts[0]
}

// logHash stands for the hash of the first n frames of an attempt's log.
func logHash(c forge.AttemptContext, n uint64) digest.Digest {
	return digest.Of(append(c.Attempt.ULID[:], byte(n)))
}

// writeLog appends frames of one byte each.
func (a *agent) writeLog(c forge.AttemptContext, first, count uint64) Answer {
	a.w.t.Helper()
	return a.w.run(&AppendLog{
		Runner: a.runner, Attempt: c.Attempt, First: forge.LogSeq(first), Count: count, Bytes: count, Hash: logHash(c, first+count-1),
	})
}

// sealOf is the seal of a log of n frames.
func sealOf(c forge.AttemptContext, n uint64) forge.LogSeal {
	return forge.LogSeal{Last: forge.LogSeq(n), Bytes: n, Hash: logHash(c, n)}
}

func (a *agent) seal(c forge.AttemptContext, seal forge.LogSeal) Answer {
	a.w.t.Helper()
	return a.w.run(&SealLog{Fence: a.fence(), Context: c, Seal: seal})
}

// logged writes and seals a log of three frames.
func (a *agent) logged(c forge.AttemptContext) {
	a.w.t.Helper()
	a.w.must(a.writeLog(c, 1, 3), "append")
	a.w.must(a.seal(c, sealOf(c, 3)), "seal")
}

// completion is what an attempt with a log of three frames reports.
func (w *world) completion(c forge.AttemptContext, result forge.Result) *forge.Completion {
	m := &forge.Completion{
		Context: c, Message: forge.MessageID{ULID: w.id()}, Result: result, Capture: forge.Succeeded, Log: sealOf(c, 3),
	}
	m.Hash = m.ResultHash()
	return m
}

func (a *agent) complete(m *forge.Completion) Answer {
	a.w.t.Helper()
	return a.w.run(&Complete{Fence: a.fence(), Completion: m})
}

// good and bad are results.
var (
	good = forge.Result{Class: forge.Succeeded}
	bad  = forge.Result{Class: forge.ExitCode, ExitCode: 1}
)
