// Package core is what an agent decides, without a world: one Step for everything that happens to an agent process.
//
// The shell around it owns sockets, disks, timers and processes. It feeds events in, one at a time, with the reading of
// its BOOTTIME clock, and carries out the effects that come back, in order. The core never waits, never looks at a clock
// and never fails; what it does not expect, it ignores or answers with a close.
//
// What it guards: no workload starts before a daemon granted its lease to this very process; a deadline counts from the
// moment before the request that was answered went out; a lease id is taken once; whatever comes from a connection that
// is not the newest is ignored; a frozen completion is sent until it is acknowledged, and nothing else ends it. Outputs that the
// daemon loses before that are delivered again, and where they cannot be, the completion is said anew without them.
//
//	attempt: Offered ─granted─▶ Accepted ─▶ Preparing ─▶ Running ─▶ Uploading ─▶ Completing ─ack─▶ cleaned up
//	                 └refused▶ dropped     └──────── stale: killed, cleaned up, nobody told ────────┘
//
// The Agent is owned by one goroutine of its shell.
package core

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// Bounds.
const (
	// MaxOutstanding is how many requests may await an answer on one connection.
	MaxOutstanding = 512
	// maxQueue is how many rejections, and how many acknowledgements of cancels, may wait to be written.
	maxQueue = 1024
	// baseBackoff and maxBackoff bound the wait before a new connection is tried; the wait is drawn from the whole range
	// below, so that a crowd of agents does not come back in step.
	baseBackoff = 500 * time.Millisecond
	maxBackoff  = 30 * time.Second
	// slowRetry is the wait where an operator has to act first.
	slowRetry = 5 * time.Minute
	// mendDelay is the wait before something is sent again that the daemon said was too early.
	mendDelay = time.Second
	// preferred is the endpoint that an agent wants to be at: the first one. While it is at another, it tries that one
	// again every preferAfter, beside the connection that it has.
	preferred   = 0
	preferAfter = 5 * time.Minute
)

// Config is who this process is. It does not change while the process lives.
type Config struct {
	Runner       forge.RunnerID
	Session      forge.AgentSessionID
	StateFolder  forge.StateFolderID
	Boot         forge.BootID
	StartCounter uint64
	Version      string
	Admission    forge.Admission // what this machine can and may run now; CommandAdmission replaces it
	Slots        int             // attempts at once, however many a daemon offers (07§224)
	Endpoints    int             // how many there are to choose from, at least 1
	Seed         uint64          // for jitter and message ids; random, from the shell
}

// Agent is the state of one agent process.
type Agent struct {
	cfg      Config
	policy   forge.LeasePolicy // as told in the latest registration
	state    forge.AgentState
	link     link
	digest   digest.Digest // of the capabilities
	attempts []*attempt
	offers   []heldOffer            // that wait for room; fewer than there are slots
	taken    map[forge.LeaseID]bool // every lease id this process ever took or rejected; 16 bytes each
	previous []Record               // of earlier processes, until a daemon has decided
	killed   bool                   // nothing of them is left alive
	drains   drains
	stopping bool
	stopped  bool
	counter  uint64
	effects  []Effect
}

// New returns the core of a fresh process. previous is what the journal of earlier processes still holds. Until the
// first registration, policy is what the configuration says.
func New(cfg Config, policy forge.LeasePolicy, previous []Record) *Agent {
	return &Agent{
		cfg: cfg, policy: policy, state: forge.AgentStarting, taken: map[forge.LeaseID]bool{},
		previous: previous, link: link{nextDial: forge.Never, prefer: forge.Never}, digest: cfg.Admission.Capabilities.Digest(),
	}
}

// Step takes in one event and returns what to do, in order. The slice is valid until the next Step. now must not run
// backward.
func (a *Agent) Step(now forge.Instant, event Event) []Effect {
	a.effects = a.effects[:0]
	if a.stopped {
		return nil
	}
	switch e := event.(type) {
	case Started:
		a.emit(KillLeftovers{})
	case LeftoversKilled:
		a.killed = true
		a.link.nextDial = now
		a.tick(now)
	case Tick:
		a.tick(now)
	case Connected:
		a.connected(now, e)
	case Closed:
		a.closed(now, e)
	case Received:
		a.received(now, e)
	case Writable:
		a.writable(now, e)
	case Reconnect:
		a.dial(now)
	case Command:
		a.command(now, e)
	default:
		a.attemptEvent(now, event)
	}
	a.want(now)
	return a.effects
}

// Wake returns when the next Tick is due.
func (a *Agent) Wake() forge.Instant {
	if a.stopped {
		return forge.Never
	}
	wake := min(a.link.wake(), a.wakeHeld())
	for _, t := range a.attempts {
		wake = min(wake, t.wake())
	}
	return wake
}

// tick does everything that is due.
func (a *Agent) tick(now forge.Instant) {
	for _, t := range a.attempts {
		a.guard(now, t)
		a.mend(now, t)
	}
	a.tickHeld(now)
	a.tickLink(now)
}

// command carries out what the runner's owner asked for.
func (a *Agent) command(now forge.Instant, c Command) {
	before := a.state
	defer func() { a.link.beat = a.link.beat || a.state != before }() // the daemon hears at once what its owner has asked for
	switch c.Kind {
	case CommandDrain:
		a.drain(drains{owner: true})
	case CommandResume:
		a.resume(drains{owner: true})
	case CommandStop:
		a.stopping = true
		a.drains.owner = true
		a.move(lifecycle.AgentShutdown)
		a.stopIfIdle()
	case CommandForce:
		a.exit(ExitForced)
	case CommandReject:
		a.rejectHeld(c.Attempt, c.Reason)
	case CommandAdmission:
		before := a.digest
		a.cfg.Admission, a.digest = c.Admission, c.Admission.Capabilities.Digest()
		a.link.capability = a.link.capability || a.digest != before
		a.reconsider()
	}
}

// drains says who wants the agent to take nothing new: its owner, or the daemon over the connection that stands. What one
// of them has asked for, the other does not take back.
type drains struct{ owner, daemon bool }

func (a *Agent) draining() bool { return a.drains.owner || a.drains.daemon }

func (a *Agent) drain(by drains) {
	a.drains.owner = a.drains.owner || by.owner
	a.drains.daemon = a.drains.daemon || by.daemon
	a.move(lifecycle.AgentDrain)
}

func (a *Agent) resume(by drains) {
	a.drains.owner = a.drains.owner && (!by.owner || a.stopping)
	a.drains.daemon = a.drains.daemon && !by.daemon
	if !a.draining() {
		a.move(lifecycle.AgentResume)
	}
}

// stopIfIdle ends a stopping process that holds nothing any more.
func (a *Agent) stopIfIdle() {
	if a.stopping && len(a.attempts) == 0 {
		a.exit(ExitStopped)
	}
}

// exit ends the process. Its sandboxes die with it.
func (a *Agent) exit(code ExitCode) {
	a.stopped = true
	a.move(lifecycle.AgentStop)
	a.emit(Exit{Code: code})
}

// move applies an event to the agent's own state; one that is not legal now changes nothing.
func (a *Agent) move(event lifecycle.Event) {
	if to, err := lifecycle.Agent.Next(a.state, event); err == nil {
		a.state = to
	}
}

func (a *Agent) emit(e Effect) { a.effects = append(a.effects, e) }

func (a *Agent) find(id forge.AttemptID) *attempt {
	for _, t := range a.attempts {
		if t.ctx.Attempt == id {
			return t
		}
	}
	return nil
}

func (a *Agent) findLease(id forge.LeaseID) *attempt {
	for _, t := range a.attempts {
		if t.ctx.Lease == id {
			return t
		}
	}
	return nil
}

// State is where the process stands, for status.
func (a *Agent) State() forge.AgentState { return a.state }

// Held lists the attempts of which anything is left, for status and for checks.
func (a *Agent) Held() []Held {
	if len(a.attempts) == 0 {
		return nil
	}
	held := make([]Held, len(a.attempts))
	for i, t := range a.attempts {
		held[i] = Held{Context: t.ctx, State: t.state, Frozen: t.frozen, Deadline: t.dog.Deadline(), Granted: t.granted, Stale: t.stale}
	}
	return held
}

// Held is one attempt that the agent holds.
type Held struct {
	Context  forge.AttemptContext
	State    forge.AttemptState
	Granted  bool
	Stale    bool
	Deadline forge.Instant // with Granted
	Frozen   *forge.Completion
}

// messageID returns a new message id. Ids of one process never repeat: they are its session's bits with a counter.
func (a *Agent) messageID() forge.MessageID {
	a.counter++
	id := forge.MessageID{ULID: a.cfg.Session.ULID}
	for i, n := 0, a.counter^a.cfg.Seed<<1; i < 8; i++ {
		id.ULID[15-i] ^= byte(n >> (8 * i))
	}
	return id
}

// nonce returns a new grant nonce.
func (a *Agent) nonce() forge.Nonce {
	a.counter++
	return forge.Nonce(a.counter)
}

// jitter returns a number in [0, n) that follows from the seed (splitmix64).
func (a *Agent) jitter(n time.Duration) time.Duration {
	if n <= 0 {
		return 0
	}
	a.counter++
	z := a.cfg.Seed + a.counter*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return time.Duration(z % uint64(n))
}
