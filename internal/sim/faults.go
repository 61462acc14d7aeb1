package sim

import (
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/core"
)

// FaultKind is one way in which the world goes wrong.
type FaultKind int

// The kinds. Those before drawnFaults are drawn for moments of a schedule; the others come with what they disturb.
const (
	FaultDrop           FaultKind = 0  // a connection loses everything, both ways, from now on
	FaultHalfOpenUp     FaultKind = 1  // only what the agent says is lost
	FaultHalfOpenDown   FaultKind = 2  // only what the daemon says is lost
	FaultPartition      FaultKind = 3  // an agent's host is cut off for a while
	FaultDelay          FaultKind = 4  // a connection becomes slow
	FaultTwoConnections FaultKind = 5  // an agent opens another connection beside the one it has
	FaultAgentKill      FaultKind = 6  // kill -9 of the agent, and start
	FaultLauncherKill   FaultKind = 7  // of agent and launcher together
	FaultAgentPause     FaultKind = 8  // SIGSTOP
	FaultAgentStop      FaultKind = 9  // graceful stop, and start
	FaultReboot         FaultKind = 10 // of an agent's host
	FaultFolderCopied   FaultKind = 11 // a copy of the state folder comes alive on another host
	FaultFolderMoved    FaultKind = 12 // the same folder, id and all, comes alive on another host
	FaultCopySameHost   FaultKind = 13 // a copy comes alive on the same host
	FaultDaemonRestart  FaultKind = 14
	FaultDaemonCutOff   FaultKind = 15 // nobody reaches a daemon for a while
	FaultStoreStall     FaultKind = 16
	FaultWallStep       FaultKind = 17 // a daemon's wall clock jumps
	FaultUserCancel     FaultKind = 18
	FaultAgentReject    FaultKind = 19 // an agent gives a lease back
	FaultDisable        FaultKind = 20 // the runner is disabled for a while
	FaultUncertain      FaultKind = 21 // commits lose their answers for a while
	FaultForgery        FaultKind = 22 // an accepted completion comes again with another result
	FaultOutputLost     FaultKind = 23 // every output of a job that has not ended is lost, or set aside as damaged
	drawnFaults         FaultKind = 24
	FaultDuplicate      FaultKind = 24 // a frame arrives twice
	FaultCommitUnknown  FaultKind = 25 // committed, but the answer was lost
	FaultCommitLost     FaultKind = 26 // not committed, and nobody can say
	faultKinds                    = 27
)

var faultNames = [faultKinds]string{
	"drop", "half-open up", "half-open down", "partition", "delay", "two connections", "agent kill", "agent and launcher kill",
	"agent pause", "agent stop", "host reboot", "folder copied to another host", "folder moved to another host",
	"folder copied on its host", "daemon restart", "daemon cut off", "store stall", "wall clock step", "user cancel",
	"agent reject", "runner disabled", "uncertain commits", "forged completion", "output lost", "duplicate frame",
	"committed, answer lost", "commit lost",
}

func (k FaultKind) String() string { return faultNames[k] }

// trigger is the moment for which a fault waits: the next time that something is said or stored.
type trigger int

// The triggers. A fault that strikes in the middle of something finds more than one that strikes at some time.
const (
	onAccept     trigger = 0
	onCompletion trigger = 1
	onReject     trigger = 2
	onResync     trigger = 3
	onRegister   trigger = 4
	onLogFinal   trigger = 5
	onHeartbeat  trigger = 6
	onPhase      trigger = 7
	onOffer      trigger = 8  // a transaction that offers begins
	onEnd        trigger = 9  // one that ends an attempt begins
	onExpire     trigger = 10 // one that expires a lease begins
	triggers             = 11
)

// armedFault is a fault that waits for its trigger.
type armedFault struct {
	kind FaultKind
	on   trigger
}

// strike lets the faults happen that wait for a trigger; r is the runner that it is about, or nil.
func (w *World) strike(on trigger, r *simRunner, job forge.JobID) {
	if len(w.armed) == 0 || !w.faulty {
		return
	}
	kept := w.armed[:0]
	var struck []FaultKind
	for _, a := range w.armed {
		if a.on == on {
			struck = append(struck, a.kind)
			continue
		}
		kept = append(kept, a)
	}
	w.armed = kept
	for _, kind := range struck {
		w.after(w.between(0, 3*time.Millisecond), func() { w.injectAt(kind, r, job) })
	}
}

// inject lets a fault happen somewhere.
func (w *World) inject(kind FaultKind) { w.injectAt(kind, nil, forge.JobID{}) }

// injectAt lets a fault happen to a runner, or to a job, if the kind is about one.
func (w *World) injectAt(kind FaultKind, r *simRunner, job forge.JobID) {
	if !w.faulty {
		return
	}
	w.result.Faults[kind]++
	w.logf("FAULT %v", kind)
	if r == nil {
		r = w.runners[w.rng.IntN(len(w.runners))]
	}
	d := w.daemons[w.rng.IntN(len(w.daemons))]
	switch kind {
	case FaultDrop, FaultHalfOpenUp, FaultHalfOpenDown, FaultDelay:
		w.disturb(kind, r)
	case FaultPartition:
		w.partition(r.hosts[0], w.between(time.Second, 4*time.Minute))
	case FaultDaemonCutOff:
		w.cutOff(d, w.between(time.Second, 2*time.Minute))
	case FaultDaemonRestart:
		d.die()
		w.after(w.between(time.Second, time.Minute), d.begin)
	case FaultStoreStall:
		w.store.stalled = w.now + int64(w.between(time.Second, 100*time.Second))
	case FaultWallStep:
		d.wall += w.between(-25*time.Hour, 25*time.Hour)
	case FaultUserCancel:
		j := w.jobOf(job)
		if j == nil {
			j = w.jobs[w.rng.IntN(len(w.jobs))]
		}
		w.cancelJob(j)
	case FaultDisable:
		w.disable(r)
	case FaultUncertain:
		w.uncertain = true
		w.after(w.between(time.Second, 30*time.Second), func() { w.uncertain = false })
	case FaultForgery:
		w.forging = true
	case FaultOutputLost:
		w.store.loseOutputs()
	default:
		w.injectAtAgent(kind, r)
	}
}

// injectAtAgent lets a fault happen to a runner's process or host.
func (w *World) injectAtAgent(kind FaultKind, r *simRunner) {
	h := r.hosts[0]
	p := h.process
	switch kind {
	case FaultFolderCopied:
		w.copyFolder(r, false, w.newHost(h.name+"'", r))
		return
	case FaultFolderMoved:
		w.copyFolder(r, true, w.newHost(h.name+"\"", r))
		return
	case FaultCopySameHost:
		twin := w.newHost(h.name+"=", r)
		twin.boot, twin.clock = h.boot, h.clock
		w.copyFolder(r, false, twin)
		return
	case FaultReboot:
		h.reboot()
		return
	}
	if p == nil || !p.alive {
		return
	}
	switch kind {
	case FaultTwoConnections:
		// What is said on the old connection may arrive long after the new one has taken over.
		for _, c := range p.conns {
			if c.up[agentSide] && w.chance(2) {
				c.slow = w.between(0, 5*time.Second)
			}
		}
		p.handle(core.Reconnect{})
	case FaultAgentKill:
		p.kill(false)
		w.after(w.between(10*time.Millisecond, 30*time.Second), h.startAgent)
	case FaultLauncherKill:
		p.kill(true)
		w.after(w.between(10*time.Millisecond, 3*time.Minute), h.startAgent)
	case FaultAgentPause:
		p.pause(w.between(time.Second, 5*time.Minute))
	case FaultAgentStop:
		p.handle(core.Command{Kind: core.CommandStop})
		w.after(w.between(time.Second, time.Minute), func() {
			if p.alive {
				p.handle(core.Command{Kind: core.CommandForce})
			}
			w.after(time.Second, h.startAgent)
		})
	case FaultAgentReject:
		for _, held := range p.core.Held() {
			if held.State <= forge.AttemptPreparing {
				w.reach(LeaseGivenBack)
				if w.chance(2) {
					w.disturb(FaultDrop, r) // and the word of it is lost
				}
				p.handle(core.Command{Kind: core.CommandReject, Attempt: held.Context.Attempt, Reason: forge.RejectLocalPolicy})
			}
		}
	}
}

// disturb changes the connections that a runner has now.
func (w *World) disturb(kind FaultKind, r *simRunner) {
	for _, p := range r.processes() {
		for _, c := range p.conns {
			if !c.up[agentSide] && !c.up[daemonSide] {
				continue
			}
			switch kind {
			case FaultDrop:
				c.sever(true, true)
			case FaultHalfOpenUp:
				c.sever(true, false)
			case FaultHalfOpenDown:
				c.sever(false, true)
			default:
				c.slow = w.between(0, 25*time.Second)
				w.after(w.between(time.Second, time.Minute), func() {
					c.slow = 0
					if w.chance(2) {
						c.sever(true, true)
					}
				})
			}
		}
	}
}

func (w *World) partition(h *host, d time.Duration) {
	h.isolated = true
	if h.process != nil {
		for _, c := range h.process.conns {
			c.sever(true, true)
		}
	}
	w.after(d, func() { h.isolated = false })
}

func (w *World) cutOff(d *daemon, span time.Duration) {
	d.isolated = true
	for _, c := range w.conns {
		if c.daemon == d {
			c.sever(true, true)
		}
	}
	w.after(span, func() { d.isolated = false })
}

// copyFolder brings a copy of a runner's state folder to life elsewhere, journal, credential and all. A copy is a folder
// of its own; one that was moved keeps its id.
func (w *World) copyFolder(r *simRunner, moved bool, to *host) {
	from := &r.hosts[0].folder
	to.folder.starts = from.starts
	to.folder.journal = slices.Clone(from.journal)
	if moved {
		to.folder.id = from.id
	}
	r.hosts = append(r.hosts, to)
	to.startAgent()
	w.after(w.between(30*time.Second, 6*time.Minute), func() { w.removeCopy(to) })
}

// removeCopy is the operator who finds it.
func (w *World) removeCopy(h *host) {
	if h.process != nil {
		h.process.kill(false)
	}
	h.removed = true
	original := h.runner.hosts[0]
	if h.folder.id == original.folder.id {
		original.folder.starts = max(original.folder.starts, h.folder.starts)
	}
}

func (w *World) disable(r *simRunner) {
	set := func(disabled bool) {
		w.store.run(w.anyDaemon(), &authority.SetRunner{Runner: r.id, Disabled: disabled}, func(bool, bool, authority.Answer) {})
	}
	set(true)
	w.after(w.between(time.Second, 2*time.Minute), func() { set(false) })
}

// fate is what becomes of a commit.
type fate int

const (
	fateCommitted        fate = 0
	fateRefused          fate = 1
	fateCommittedUnknown fate = 2
	fateLostUnknown      fate = 3
)

// drawFate draws what becomes of a commit. A daemon that died while its commit was on the way may have got it through.
func (w *World) drawFate(dead bool) fate {
	switch {
	case dead && w.chance(2):
		return fateLostUnknown
	case dead:
		return fateCommittedUnknown
	case w.faulty && (w.uncertain && w.chance(3) || w.chance(1500)):
		if w.chance(2) {
			w.result.Faults[FaultCommitUnknown]++
			return fateCommittedUnknown
		}
		w.result.Faults[FaultCommitLost]++
		return fateLostUnknown
	}
	return fateCommitted
}

// heal ends every fault and lets the operators do what operators do: remove copies, start what is down.
func (w *World) heal() {
	w.logf("HEAL")
	w.faulty, w.uncertain = false, false
	w.store.stalled = min(w.store.stalled, w.now)
	for _, d := range w.daemons {
		d.isolated = false
		if !d.alive {
			d.begin()
		}
	}
	for _, r := range w.runners {
		w.store.run(w.anyDaemon(), &authority.SetRunner{Runner: r.id}, func(bool, bool, authority.Answer) {})
		for _, h := range r.hosts[1:] {
			w.removeCopy(h)
		}
		h := r.hosts[0]
		h.isolated = false
		w.after(w.between(0, 5*time.Second), h.startAgent)
		w.revive(h)
	}
	w.after(10*time.Second, w.askAgain)
}

// revive starts an agent again whenever it has ended. One that was superseded by a copy gets a new start.
func (w *World) revive(h *host) {
	w.after(30*time.Second, func() {
		stuck := h.process != nil && h.process.alive && h.process.state() != forge.AgentOnline && w.chance(20)
		if stuck {
			h.process.kill(false) // the operator reads "clone suspected" and starts the agent anew
		}
		h.startAgent()
		if !w.quiet() {
			w.revive(h)
		}
	})
}

// askAgain lets operators and planners ask again for what was lost on its way.
func (w *World) askAgain() {
	for _, r := range w.runners {
		if row(w.store.runners, r.id).value.Disabled {
			w.store.run(w.anyDaemon(), &authority.SetRunner{Runner: r.id}, func(bool, bool, authority.Answer) {})
		}
	}
	for _, j := range w.jobs {
		r := row(w.store.jobs, j.id)
		if !r.found {
			continue
		}
		if r.value.State == forge.JobWaiting {
			w.store.run(w.anyDaemon(), &authority.Plan{Job: j.id, Spec: forge.SpecID(j.spec)}, func(bool, bool, authority.Answer) {})
		}
	}
	w.after(30*time.Second, w.askAgain)
}
