package sim

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/forge"
	runner "github.com/forgeyard/forgeyard/internal/runner/core"
)

// idleTimeout is when a side notices that nothing arrives any more.
const idleTimeout = 15 * time.Second

// conn is one connection between an agent process and a daemon process. Frames of one direction arrive in order; what
// travels on other streams or connections overtakes them freely. A direction that is cut loses everything from then on.
type conn struct {
	w       *World
	id      core.ConnID
	seq     uint64 // the agent's number for it
	agent   *process
	daemon  *daemon
	life    uint64 // of the daemon process that it leads to
	latency time.Duration
	up      [2]bool // which side still has it
	cut     [2]bool // by direction
	last    [2]int64
	slow    time.Duration // extra delay of the control stream
	streams map[forge.AttemptID]*logStream
}

// Sides and directions: a direction is named for the side that sends.
const (
	agentSide  = 0
	daemonSide = 1
)

// dial opens a connection, or fails after a while.
func (w *World) dial(p *process, seq uint64, endpoint int) {
	d := w.daemons[endpoint%len(w.daemons)]
	latency := w.between(200*time.Microsecond, 80*time.Millisecond)
	if w.chance(4) {
		latency = w.between(50*time.Millisecond, time.Second)
	}
	c := &conn{
		w: w, id: core.ConnID(len(w.conns) + 1), seq: seq, agent: p, daemon: d, life: d.life, latency: latency,
		streams: map[forge.AttemptID]*logStream{},
	}
	if !d.alive || p.host.isolated || d.isolated {
		w.after(w.between(time.Second, 5*time.Second), func() { p.closed(seq, forge.CloseLost) })
		return
	}
	w.conns = append(w.conns, c)
	w.after(2*latency, func() {
		if !d.alive || d.life != c.life || !p.alive {
			p.closed(seq, forge.CloseLost)
			return
		}
		c.up = [2]bool{true, true}
		p.conns = append(p.conns, c)
		d.opened(c)
		p.handle(runner.Connected{Seq: seq})
	})
}

// arrival is when something that is sent now gets to the other side, behind everything sent before.
func (c *conn) arrival(from int) int64 {
	at := c.w.now + int64(c.latency+c.w.between(0, c.latency/2)+c.slow)
	c.last[from] = max(c.last[from]+1, at)
	return c.last[from]
}

// channel numbers the control stream of a direction.
func (c *conn) channel(from int) int { return 2*int(c.id) + from }

// send carries a frame to the other side.
func (c *conn) send(from int, f forge.Frame) {
	if c.cut[from] || !c.up[from] {
		c.w.reach(FrameLost)
		return
	}
	if c.w.opts.Bytes {
		through, err := throughWire(f)
		if err != nil {
			c.w.violate("wire", "%T does not survive its own wire form: %v", f.Body, err)
			return
		}
		f = through
	}
	at := c.arrival(from)
	c.w.inOrder(c.channel(from), at, func() { c.deliver(from, f) })
	if c.w.faulty && c.w.shape.duplicates && c.w.chance(12) {
		c.w.result.Faults[FaultDuplicate]++
		c.w.at(at+int64(c.w.between(0, 10*time.Second)), func() { c.deliver(from, f) })
	}
}

func (c *conn) deliver(from int, f forge.Frame) {
	if c.cut[from] {
		c.w.reach(FrameLost)
		return
	}
	if from == agentSide {
		if c.up[daemonSide] && c.daemon.life == c.life {
			if !c.agent.alive {
				c.w.reach(FrameFromTheDead)
			}
			c.daemon.received(c, f)
		}
		return
	}
	if c.up[agentSide] {
		c.agent.receivedFrame(c, f)
	}
}

// close ends the connection on one side; the other hears of it if the path is whole, else by silence.
func (c *conn) close(side int, reason forge.CloseReason) {
	if !c.up[side] {
		return
	}
	c.up[side] = false
	other := 1 - side
	at := c.arrival(side)
	if c.cut[side] {
		at, reason = c.w.now+int64(idleTimeout), forge.CloseLost
	}
	if c.cut[side] {
		c.w.timer(at, func() { c.hear(other, reason) })
		return
	}
	c.w.inOrder(c.channel(side), at, func() { c.hear(other, reason) })
}

// hear tells a side that the connection is gone.
func (c *conn) hear(side int, reason forge.CloseReason) {
	if !c.up[side] {
		return
	}
	c.up[side] = false
	if side == agentSide {
		c.agent.closed(c.seq, reason)
		return
	}
	if c.daemon.life == c.life {
		c.daemon.handle(core.Closed{Conn: c.id})
	}
}

// sever cuts directions. Each side that hears nothing any more notices after a while.
func (c *conn) sever(agentToDaemon, daemonToAgent bool) {
	c.cut[agentSide] = c.cut[agentSide] || agentToDaemon
	c.cut[daemonSide] = c.cut[daemonSide] || daemonToAgent
	if agentToDaemon {
		c.w.after(idleTimeout, func() { c.silence(daemonSide) })
	}
	if daemonToAgent {
		c.w.after(idleTimeout, func() { c.silence(agentSide) })
	}
}

// silence is a side's own conclusion that the other is gone.
func (c *conn) silence(side int) {
	if !c.up[side] {
		return
	}
	if side == agentSide {
		c.hear(agentSide, forge.CloseLost)
		c.up[agentSide] = false
		c.w.at(c.arrival(agentSide), func() { c.hear(daemonSide, forge.CloseLost) })
		return
	}
	c.hear(daemonSide, forge.CloseLost)
	if !c.cut[daemonSide] {
		c.w.at(c.arrival(daemonSide), func() { c.hear(agentSide, forge.CloseLost) })
	}
}

// logStream carries the frames of one attempt's log. It is a stream of its own: control frames overtake it.
type logStream struct {
	next  forge.LogSeq // first frame not sent yet
	known forge.LogSeq // first frame not acknowledged
	busy  bool         // a batch awaits its acknowledgement
}

// streamLog sends what the spool holds from a frame on, one batch at a time.
func (c *conn) streamLog(attempt forge.AttemptID, from forge.LogSeq) {
	s := c.streams[attempt]
	if s == nil {
		s = &logStream{}
		c.streams[attempt] = s
	}
	s.next, s.known, s.busy = from, from, false
	c.pump(attempt)
}

// pump sends the next batch, if there is one.
func (c *conn) pump(attempt forge.AttemptID) {
	s, b := c.streams[attempt], c.w.boxes[attempt]
	if s == nil || b == nil || s.busy || !c.up[agentSide] || s.next > b.spooled {
		return
	}
	first, count := s.next, uint64(b.spooled-s.next+1)
	count = min(count, 1+c.w.rng.Uint64N(8))
	s.busy = true
	s.next += forge.LogSeq(count)
	if c.cut[agentSide] {
		return
	}
	c.w.after(c.latency+c.w.between(0, 2*c.latency), func() {
		if c.up[daemonSide] && c.daemon.life == c.life && !c.cut[agentSide] {
			c.daemon.receivedLog(c, attempt, first, count)
		}
	})
}

// acked goes on with the next batch.
func (c *conn) acked(attempt forge.AttemptID, next forge.LogSeq) {
	if s := c.streams[attempt]; s != nil {
		s.busy = false
		s.next = max(next, 1)
		s.known = max(s.known, s.next)
		c.pump(attempt)
	}
}
