package sim

import (
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// simRunner is a provisioned runner: one credential, normally on one host.
type simRunner struct {
	id    forge.RunnerID
	slots int
	hosts []*host // the first is where it belongs; others carry copies
}

func (r *simRunner) processes() []*process {
	var list []*process
	for _, h := range r.hosts {
		if h.process != nil && h.process.alive {
			list = append(list, h.process)
		}
	}
	return list
}

// host is a machine: a clock, a boot, a state folder, the sandboxes on it, and at most one agent process.
type host struct {
	w        *World
	name     string
	runner   *simRunner
	clock    clock
	boot     forge.BootID
	folder   folder
	process  *process
	boxes    []*sandbox
	isolated bool // no new connection gets out
	started  int
	part     int  // of the world, in an exploration
	removed  bool // an operator has found the copy
}

// folder is an agent's state folder.
type folder struct {
	id      forge.StateFolderID
	starts  uint64
	journal []core.Record
}

func (h *host) now() forge.Instant { return h.clock.read(h.w.now) }

// process is one agent process.
type process struct {
	w       *World
	name    string
	runner  *simRunner
	host    *host
	alive   bool
	paused  bool
	backlog []func()
	core    *core.Agent
	session forge.AgentSessionID
	conns   []*conn
	armed   forge.Instant
	diskAt  int64 // when the latest journal operation is done
	beatAt  int64 // the last sign of life that took effect
	held    []core.Held
}

func (p *process) state() forge.AgentState { return p.core.State() }

// startAgent starts a process on the host's folder.
func (h *host) startAgent() {
	if h.removed || h.process != nil && h.process.alive {
		return
	}
	h.folder.starts++
	h.started++
	w := h.w
	session := forge.AgentSessionID{ULID: w.ulid()}
	p := &process{
		w: w, name: h.name + "/" + short(session.ULID), runner: h.runner, host: h, alive: true, session: session, armed: forge.Never,
	}
	p.core = core.New(core.Config{
		Runner: h.runner.id, Session: session, StateFolder: h.folder.id, Boot: h.boot, StartCounter: h.folder.starts,
		Admission: admission, Version: "sim",
		Slots: h.runner.slots, Endpoints: len(w.daemons), Seed: w.rng.Uint64(),
	}, w.shape.policy, slices.Clone(h.folder.journal))
	h.process = p
	w.logf("agent %s starts, start %d of folder %s", p.name, h.folder.starts, short(h.folder.id.ULID))
	p.handle(core.Started{})
}

// kill ends the process at once. Its launcher, if that is not killed with it, ends the sandboxes a moment later; else
// they live until their own deadline.
func (p *process) kill(launcherToo bool) {
	if !p.alive {
		return
	}
	w := p.w
	w.logf("agent %s is killed, launcher too: %v", p.name, launcherToo)
	p.alive, p.paused, p.backlog = false, false, nil
	for _, c := range p.conns {
		if c.up[agentSide] {
			c.up[agentSide] = false
			delay := idleTimeout
			if w.chance(2) {
				delay = c.latency
			}
			w.after(delay+c.slow, func() { c.hear(daemonSide, forge.CloseLost) })
		}
	}
	if launcherToo {
		w.reach(SandboxOrphaned)
		return
	}
	for _, b := range p.host.boxes {
		if b.owner == p {
			w.after(w.between(0, 300*time.Millisecond), func() { b.kill() })
		}
	}
}

// reboot ends everything on the host and starts an agent a while later.
func (h *host) reboot() {
	w := h.w
	w.logf("host %s reboots", h.name)
	if h.process != nil {
		h.process.kill(true)
	}
	for _, b := range h.boxes {
		b.vanish()
	}
	h.boxes = nil
	h.boot = forge.BootID{ULID: w.ulid()}
	w.after(w.between(time.Second, 40*time.Second), h.startAgent)
}

// pause stops the process (SIGSTOP): everything that happens waits until it goes on. Its sandboxes run.
func (p *process) pause(d time.Duration) {
	if !p.alive || p.paused {
		return
	}
	p.w.logf("agent %s stops for %v", p.name, d)
	p.paused = true
	p.w.after(d, func() {
		if !p.alive {
			return
		}
		p.w.logf("agent %s goes on", p.name)
		p.paused = false
		for _, h := range p.core.Held() {
			p.w.reachIf(h.Granted && h.Frozen == nil && p.host.now() >= h.Deadline, PausedPastDeadline)
		}
		backlog := p.backlog
		p.backlog = nil
		for _, do := range backlog {
			do()
		}
	})
}

// handle feeds one event to the core and carries out what it says.
func (p *process) handle(e core.Event) {
	if !p.alive {
		return
	}
	if p.paused {
		p.w.explore.touch(p.host.part)
		p.backlog = append(p.backlog, func() { p.handle(e) })
		return
	}
	p.w.explore.touch(p.host.part)
	effects := p.core.Step(p.host.now(), e)
	p.w.afterStep(p, e, effects)
	for _, effect := range slices.Clone(effects) {
		p.carryOut(effect)
	}
	p.arm()
}

func (p *process) arm() {
	wake := p.core.Wake()
	if wake == p.armed || wake == forge.Never {
		p.armed = wake
		return
	}
	p.armed = wake
	p.w.timer(p.host.clock.when(max(wake, p.host.now())), func() {
		if p.alive && p.armed == wake {
			p.armed = forge.Never
			p.handle(core.Tick{})
		}
	})
}

func (p *process) closed(seq uint64, reason forge.CloseReason) {
	p.w.logf("agent %s hears that connection %d is closed: %v", p.name, seq, reason)
	p.handle(core.Closed{Seq: seq, Reason: reason})
}

func (p *process) receivedFrame(c *conn, f forge.Frame) {
	p.w.logf("agent %s ◀ daemon %d conn %d: %s", p.name, c.daemon.number, c.id, described{f.Body})
	if ack, ok := f.Body.(*forge.LogAck); ok && p.alive {
		p.w.sawLogAck(ack)
		c.acked(ack.Attempt, ack.Next)
	}
	p.handle(core.Received{Seq: c.seq, Frame: f})
}

func (p *process) conn(seq uint64) *conn {
	for i := len(p.conns) - 1; i >= 0; i-- {
		if p.conns[i].seq == seq {
			return p.conns[i]
		}
	}
	return nil
}

// carryOut does what the core asks for. Disk and sandbox work takes a while and may fail.
func (p *process) carryOut(effect core.Effect) {
	w := p.w
	switch e := effect.(type) {
	case core.KillLeftovers:
		w.after(w.between(5*time.Millisecond, time.Second), func() {
			p.host.killLeftovers()
			p.handle(core.LeftoversKilled{})
		})
	case core.Dial:
		w.dial(p, e.Seq, e.Endpoint+w.rng.IntN(2))
	case core.CloseLink:
		if c := p.conn(e.Seq); c != nil {
			c.close(agentSide, e.Reason)
		}
	case core.Want:
		delay := w.between(0, time.Millisecond)
		if w.faulty && w.chance(200) {
			delay = w.between(0, 12*time.Second)
			w.reach(OutboxHeldBack)
		}
		w.after(delay, func() { p.handle(core.Writable(e)) })
	case core.Transmit:
		w.logf("agent %s ▶ conn seq %d: %s", p.name, e.Seq, described{e.Frame.Body})
		w.sawTransmit(p, e.Frame)
		if c := p.conn(e.Seq); c != nil {
			c.send(agentSide, e.Frame)
		}
	case core.StreamLog:
		if c := p.conn(e.Seq); c != nil && c.up[agentSide] {
			c.streamLog(e.Attempt, e.From)
		}
	case core.WriteRecord:
		p.onDisk(func() { p.journal(e.Record) })
	case core.DropRecord:
		p.onDisk(func() {
			p.host.folder.journal = slices.DeleteFunc(p.host.folder.journal, func(r core.Record) bool {
				return r.Context.Attempt == e.Attempt
			})
		})
	case core.Exit:
		w.sawExit(p, e.Code)
		p.kill(false)
	default:
		p.sandboxEffect(effect)
	}
}

// onDisk does something to the journal, after everything that was asked for before. A stopped process stops here too.
func (p *process) onDisk(do func()) {
	p.diskAt = max(p.diskAt+1, p.w.now+int64(p.w.between(time.Millisecond, 50*time.Millisecond)))
	var step func()
	step = func() {
		switch {
		case !p.alive:
		case p.paused:
			p.backlog = append(p.backlog, step)
		default:
			do()
		}
	}
	p.w.inOrder(-p.host.part, p.diskAt, step)
}

// journal makes a record durable.
func (p *process) journal(r core.Record) {
	kept := slices.DeleteFunc(p.host.folder.journal, func(old core.Record) bool { return old.Context.Attempt == r.Context.Attempt })
	p.host.folder.journal = append(kept, r)
	p.handle(core.Journaled{Attempt: r.Context.Attempt, Version: r.Version})
}

// killLeftovers ends every sandbox that an earlier process left on this host.
func (h *host) killLeftovers() {
	for _, b := range slices.Clone(h.boxes) {
		if !b.owner.alive {
			if b.alive {
				h.w.reach(OrphanKilledAtStart)
			}
			b.kill()
		}
	}
}
