package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
)

// shape is what a schedule is made of, apart from its faults.
type shape struct {
	policy     forge.LeasePolicy
	interleave bool // READ COMMITTED, else serial
	duplicates bool // frames arrive twice
	horizon    time.Duration
	runners    int
	daemons    int
	jobs       int
	slots      int
	faults     int
}

// drawShape draws a shape: at least ten virtual minutes, three agents, two daemons, eight jobs; of the faults drawn, five happen on average.
func drawShape(rng *rand.Rand) shape {
	s := shape{
		policy: policies[rng.IntN(len(policies))], interleave: rng.IntN(3) > 0, duplicates: rng.IntN(4) == 0,
		horizon: 10 * time.Minute, runners: 3, daemons: 2, jobs: 8, slots: 1 + rng.IntN(3), faults: 4 + rng.IntN(6),
	}
	return s
}

// policies are the time scales: the default, the shortest allowed, and one between.
var policies = []forge.LeasePolicy{
	forge.DefaultLeasePolicy(),
	{
		TTL: 6 * time.Second, Grace: 6 * time.Second, Renew: 1500 * time.Millisecond, Margin: 2 * time.Second,
		KillLead: 3 * time.Second, SoftGrace: 2 * time.Second, OfferTTL: 10 * time.Second, Request: 10 * time.Second,
	},
	{
		TTL: 20 * time.Second, Grace: 10 * time.Second, Renew: 5 * time.Second, Margin: 2 * time.Second,
		KillLead: 3 * time.Second, SoftGrace: 2 * time.Second, OfferTTL: 10 * time.Second, Request: 8 * time.Second,
	},
}

// simJob is a job with what its workload will do.
type simJob struct {
	w         *World
	id        forge.JobID
	spec      []byte
	prepare   time.Duration
	runs      time.Duration
	endless   bool
	frames    int
	outputs   int
	class     forge.Class
	notBefore int64
	backedOff uint32
	started   int // workloads
}

func (j *simJob) result() forge.Result {
	r := forge.Result{Class: j.class}
	if j.class == forge.ExitCode {
		r.ExitCode = 1
	}
	return r
}

// start sets the world up and plans everything that will happen to it.
func (w *World) start() {
	for i := range w.shape.daemons {
		w.daemons = append(w.daemons, &daemon{w: w, number: i + 1, clock: w.drawClock()})
	}
	for i := range w.shape.runners {
		w.addRunner(string(rune('A' + i)))
	}
	for _, d := range w.daemons {
		w.after(w.between(0, 3*time.Second), d.begin)
	}
	for _, r := range w.runners {
		w.after(w.between(0, 5*time.Second), r.hosts[0].startAgent)
	}
	for range w.shape.jobs {
		w.addJob()
	}
	for range w.shape.faults {
		kind := FaultKind(w.rng.IntN(int(drawnFaults)))
		at := w.between(5*time.Second, w.shape.horizon)
		if w.chance(2) {
			w.after(at, func() { w.inject(kind) })
			continue
		}
		on := drawTrigger(w.rng, kind)
		w.after(at, func() { w.armed = append(w.armed, armedFault{kind: kind, on: on}) })
	}
	if w.faulty {
		w.after(w.shape.horizon, w.heal)
	}
}

// drawClock draws a clock at one of the ends of what we assume, or between.
func (w *World) drawClock() clock {
	rates := []float64{0.98, 1.02, 1, 0.98 + 0.04*w.rng.Float64()}
	return clock{rate: rates[w.rng.IntN(len(rates))], offset: w.rng.Int64N(int64(1000 * time.Hour))}
}

func (w *World) addRunner(name string) {
	r := &simRunner{id: forge.RunnerID{ULID: w.ulid()}, slots: w.shape.slots}
	r.hosts = []*host{w.newHost(name, r)}
	w.runners = append(w.runners, r)
	s := row(w.store.sessions, r.id)
	s.value, s.found = authority.Session{Runner: r.id}, true
	row(w.store.runners, r.id).value = authority.Runner{ID: r.id, Slots: r.slots}
	row(w.store.runners, r.id).found = true
}

func (w *World) newHost(name string, r *simRunner) *host {
	return &host{
		w: w, name: name, runner: r, clock: w.drawClock(), boot: forge.BootID{ULID: w.ulid()},
		folder: folder{id: forge.StateFolderID{ULID: w.ulid()}}, part: partHost + len(w.runners),
	}
}

// addJob plans a job's submission.
func (w *World) addJob() {
	j := &simJob{w: w, id: forge.JobID{ULID: w.ulid()}}
	j.spec = specOf(j.id)
	j.prepare = w.between(10*time.Millisecond, 3*time.Second)
	if w.chance(10) {
		j.prepare = w.between(0, 90*time.Second)
	}
	j.runs = w.between(10*time.Millisecond, 40*time.Second)
	if w.chance(4) {
		j.runs = w.between(0, 4*time.Minute)
	}
	j.endless = w.chance(25)
	j.frames = w.rng.IntN(12)
	j.outputs = w.rng.IntN(2)
	j.class = forge.Succeeded
	if w.chance(3) {
		j.class = []forge.Class{forge.ExitCode, forge.Signal, forge.OutOfMemory}[w.rng.IntN(3)]
	}
	w.jobs = append(w.jobs, j)
	w.after(w.between(0, w.shape.horizon*6/10), func() { w.submit(j) })
}

func (w *World) submit(j *simJob) {
	policy := w.shape.policy
	job := authority.Job{ID: j.id, State: forge.JobReady, Spec: forge.SpecID(j.spec), MaxLifetime: 20 * time.Minute}
	job.HardTTL = policy.HardTTL(forge.Continuous, 0)
	switch w.rng.IntN(5) {
	case 0, 1:
		job.HardTTL = policy.HardTTL(forge.GracePeriod, policy.Grace)
	case 2:
		job.HardTTL = policy.HardTTL(forge.OfflineAuthorized, 5*time.Minute)
	}
	if w.chance(4) || j.endless {
		job.MaxLifetime = w.between(10*time.Second, 3*time.Minute)
	}
	job.Retry = &forge.RetryPolicy{
		Infra: uint8(w.rng.IntN(3)), Max: uint8(w.rng.IntN(3)), On: []forge.RetryWord{forge.RetryExit, forge.RetryOOM},
	}
	if w.chance(4) {
		job.State = forge.JobWaiting
		w.after(w.between(0, time.Minute), func() {
			w.store.run(w.anyDaemon(), &authority.Plan{Job: j.id, Spec: job.Spec}, func(bool, bool, authority.Answer) {})
		})
	}
	r := row(w.store.jobs, j.id)
	r.value, r.found = job, true
	if w.chance(8) {
		w.after(w.between(0, 2*time.Minute), func() { w.cancelJob(j) })
	}
}

// cancelJob is a user who wants a job stopped, and asks again if nobody answers.
func (w *World) cancelJob(j *simJob) {
	d := w.anyDaemon()
	if !d.alive {
		w.after(time.Second, func() { w.cancelJob(j) })
		return
	}
	life := d.life
	answered := false
	w.store.run(d, &authority.CancelJob{Job: j.id}, func(committed, _ bool, _ authority.Answer) { answered = committed })
	w.after(20*time.Second, func() {
		if !answered || d.life != life {
			w.reach(CancelAskedTwice)
			if !w.store.job(j.id).CancelRequested {
				w.cancelJob(j)
			}
		}
	})
}

// anyDaemon returns a daemon that is alive, if there is one.
func (w *World) anyDaemon() *daemon {
	d := w.daemons[w.rng.IntN(len(w.daemons))]
	if d.alive {
		return d
	}
	for _, other := range w.daemons {
		if other.alive {
			return other
		}
	}
	return d
}

func (w *World) jobOf(id forge.JobID) *simJob {
	for _, j := range w.jobs {
		if j.id == id {
			return j
		}
	}
	return nil
}

// offer builds the message; once in a while the bytes are not those of the spec.
func (w *World) offer(c forge.AttemptContext) *forge.LeaseOffer {
	spec := w.jobOf(c.Job).spec
	if w.faulty && w.chance(100) {
		spec = slices.Clone(spec)
		spec[w.rng.IntN(len(spec))] ^= 1
		w.reach(SpecCorrupted)
	}
	return &forge.LeaseOffer{Context: c, Spec: spec}
}

// drawTrigger draws the moment for which a fault waits: often one at which its kind matters most.
func drawTrigger(rng *rand.Rand, kind FaultKind) trigger {
	if rng.IntN(2) == 0 {
		return trigger(rng.IntN(int(triggers)))
	}
	switch kind {
	case FaultUserCancel:
		return []trigger{onOffer, onAccept, onAccept, onEnd}[rng.IntN(4)]
	case FaultAgentReject:
		return []trigger{onAccept, onPhase}[rng.IntN(2)]
	case FaultTwoConnections, FaultDelay:
		return []trigger{onCompletion, onReject, onResync, onEnd, onRegister}[rng.IntN(5)]
	case FaultStoreStall:
		return onExpire
	case FaultPartition:
		return onAccept
	default:
		return []trigger{onCompletion, onAccept}[rng.IntN(2)]
	}
}

// specOf makes a specification that is a job's own.
func specOf(id forge.JobID) []byte {
	spec := forge.DefaultJobSpec()
	spec.Job = forge.JobKey("job-" + short(id.ULID))
	spec.Steps = []forge.Step{{Name: "work", Argv: []string{"true"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	b, err := jobspec.Encode(spec)
	if err != nil {
		panic("sim: " + err.Error())
	}
	return b
}

// admission is a machine that can run all of it.
var admission = forge.Admission{
	Capabilities: forge.Capabilities{
		SchemaVersion: 1, Platform: forge.Platform{OS: "linux", Arch: "amd64"},
		Resources: roomy, Sandboxes: []forge.Sandbox{{Kind: forge.SandboxNative}},
	},
	Free: roomy,
}

var roomy = forge.Resources{CPU: 64_000, Memory: 256 * forge.GiB, Disk: 1024 * forge.GiB, Slots: 16}
