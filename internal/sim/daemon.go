package sim

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// daemon is a daemon's machine and the process on it. The process may die and start again: then it remembers nothing.
type daemon struct {
	w        *World
	number   int
	clock    clock
	life     uint64 // counts the processes
	alive    bool
	isolated bool // no new connection gets through
	core     *core.Daemon
	conns    map[core.ConnID]*conn
	armed    forge.Instant
	wall     time.Duration // by which the wall clock is off; nothing here may depend on it
}

func (d *daemon) now() forge.Instant { return d.clock.read(d.w.now) }

// begin starts a process.
func (d *daemon) begin() {
	d.life++
	d.alive = true
	d.conns = map[core.ConnID]*conn{}

	d.core = core.New(core.Config{Policy: d.w.shape.policy, Seed: d.w.rng.Uint64()})
	d.armed = forge.Never
	d.w.logf("daemon %d starts", d.number)
	d.handle(core.Tick{})
}

// die ends it at once: its transactions stop where they are, its connections break.
func (d *daemon) die() {
	if !d.alive {
		return
	}
	d.w.logf("daemon %d dies", d.number)
	d.alive = false
	d.life++
	for _, c := range d.w.conns {
		if c.daemon == d && c.up[daemonSide] {
			c.up[daemonSide] = false
			delay := idleTimeout
			if d.w.chance(2) {
				delay = c.latency
			}
			d.w.after(delay, func() { c.hear(agentSide, forge.CloseLost) })
		}
	}
}

func (d *daemon) opened(c *conn) {
	d.conns[c.id] = c
	d.handle(core.Opened{Conn: c.id, Runner: c.agent.runner.id})
}

func (d *daemon) received(c *conn, f forge.Frame) {
	d.w.logf("daemon %d ◀ agent %s conn %d: %s", d.number, c.agent.name, c.id, described{f.Body})
	d.w.sawAtDaemon(d, c, f)
	d.handle(core.Received{Conn: c.id, Frame: f})
}

// handle feeds one event to the core and carries out what it says.
func (d *daemon) handle(e core.Event) {
	if !d.alive {
		return
	}
	d.w.explore.touch(partDaemon + d.number)
	for _, effect := range d.core.Step(d.now(), e) {
		d.carryOut(effect)
	}
	d.arm()
}

// arm plans the next tick.
func (d *daemon) arm() {
	wake := d.core.Wake()
	if wake == d.armed || wake == forge.Never {
		d.armed = wake
		return
	}
	d.armed = wake
	life := d.life
	d.w.timer(d.clock.when(max(wake, d.now())), func() {
		if d.life == life && d.armed == wake {
			d.armed = forge.Never
			d.handle(core.Tick{})
		}
	})
}

func (d *daemon) carryOut(effect core.Effect) {
	switch e := effect.(type) {
	case core.Begin:
		d.w.store.run(d, e.Command, func(committed, unknown bool, answer authority.Answer) {
			d.handle(core.Done{Tx: e.Tx, Committed: committed, Unknown: unknown, Answer: answer})
		})
	case core.Load:
		d.w.store.snapshot(d, e.Runner, func(s *authority.Snapshot) {
			d.handle(core.Loaded{Tx: e.Tx, Snapshot: s})
			if e.Runner.IsZero() {
				d.schedule(s)
			}
		})
	case core.Send:
		if c := d.conns[e.Conn]; c != nil {
			c.send(daemonSide, e.Frame)
		}
	case core.SendOffer:
		if c := d.conns[e.Conn]; c != nil {
			c.send(daemonSide, forge.Frame{ID: e.ID, Body: d.w.offer(e.Context)})
		}
	case core.Close:
		if c := d.conns[e.Conn]; c != nil {
			d.w.logf("daemon %d closes conn %d of agent %s: %v", d.number, c.id, c.agent.name, e.Reason)
			d.w.sawClose(c, e.Reason)
			delete(d.conns, e.Conn)
			c.close(daemonSide, e.Reason)
		}
	case core.Audit:
		d.w.sawAudit(e.Kind)
	}
}

// receivedLog makes frames durable and says so. A batch that overlaps what is stored is cut to what is new.
func (d *daemon) receivedLog(c *conn, attempt forge.AttemptID, first forge.LogSeq, count uint64) {
	end := first + forge.LogSeq(count)
	cmd := &authority.AppendLog{
		Runner: c.agent.runner.id, Attempt: attempt, First: first, Count: count, Bytes: count * frameBytes,
		Hash: transcript(attempt, end-1),
	}
	d.w.store.run(d, cmd, func(committed, _ bool, answer authority.Answer) {
		switch {
		case !committed:
			// The stream is reset; the agent's spool opens another from the first frame that has no acknowledgement.
			d.w.reach(LogStreamReset)
			d.w.after(time.Second, func() { c.acked(attempt, c.streams[attempt].known) })
		case !answer.Done && first < answer.Next && answer.Next < end:
			d.w.reach(LogOverlapCut)
			d.receivedLog(c, attempt, answer.Next, uint64(end-answer.Next))
			return
		default:
			c.send(daemonSide, forge.Frame{ID: forge.MessageID{ULID: d.w.ulid()}, Body: &forge.LogAck{Attempt: attempt, Next: answer.Next}})
		}
	})
}

// schedule places ready jobs at random, as carelessly as a scheduler possibly can: what keeps a job single is the store.
func (d *daemon) schedule(*authority.Snapshot) {
	for _, j := range d.w.jobs {
		job := d.w.store.job(j.id)
		if job.State != forge.JobReady || d.w.now < j.notBefore {
			continue
		}
		if job.FreeRetries > j.backedOff && job.FreeRetries%5 == 0 {
			j.backedOff = job.FreeRetries
			j.notBefore = d.w.now + int64(10*time.Second)
			d.w.reach(OfferBackedOff)
			continue
		}
		r := d.w.runners[d.w.rng.IntN(len(d.w.runners))]
		d.handle(core.Place{
			Job: j.id, Runner: r.id, Attempt: forge.AttemptID{ULID: d.w.ulid()}, Lease: forge.LeaseID{ULID: d.w.ulid()},
		})
	}
}

// frameBytes is the size of every log frame here.
const frameBytes = 10

// transcript is the hash of an attempt's log up to a frame: what a workload writes follows from the attempt.
func transcript(attempt forge.AttemptID, last forge.LogSeq) digest.Digest {
	var d digest.Digest
	copy(d[:], attempt.ULID[:])
	for i := range 8 {
		d[16+i] = byte(last >> (8 * i))
	}
	d[31] = 1
	return d
}
