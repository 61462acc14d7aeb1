// Package core is what a daemon decides about its agents, without a world: one Step for everything that happens on its
// connections, in its store, and by the passing of time.
//
// The shell around it owns sockets, the store and timers. It feeds events in, one at a time, with a clock that never
// steps, and carries out the effects that come back, in order. Every change of authority is a rule of package authority,
// run by the store as one transaction: the core asks for it with Begin and goes on when it hears Done. No answer leaves
// before its commit is known; where the fate of a commit is not known, there is no answer and the connection ends.
//
// Requests of one connection are handled one at a time and in order. What the core remembers (connections, the watch)
// may vanish at any moment without harm: it makes the next daemon more patient, never less careful.
//
// The Daemon is owned by one goroutine of its shell.
package core

import (
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds.
const (
	// MaxQueued is how many frames of one connection may wait for the ones before them.
	MaxQueued = 1024
	// RegisterWithin is how long a connection may stand without a registration, and a resync behind it (09§60).
	RegisterWithin = 10 * time.Second
	// ReadEvery is how often a daemon reads the open leases: cancel flags reach agents within about that time, and
	// watches are as exact as that.
	ReadEvery = time.Second
	// DisabledWithin is how long a disabled runner keeps its connection to stop what it runs. With the reading that sees
	// it, that makes less than five seconds.
	DisabledWithin = 3 * time.Second
)

// Config is what a daemon is told at its start.
type Config struct {
	Policy forge.LeasePolicy
	Seed   uint64 // for message ids; random, from the shell
}

// Daemon is the state of one daemon process as far as agents are concerned.
type Daemon struct {
	cfg      Config
	watch    *authority.Watch
	conns    []*conn
	txs      map[TxID]pending
	lastTx   TxID
	reading  bool // a Load of everything is out
	nextRead forge.Instant
	due      []*authority.Expire
	counter  uint64
	effects  []Effect
}

// pending is what a transaction is for: a request of a connection, or something that the daemon does by itself.
type pending struct {
	conn    ConnID            // of the request, or of the offer
	command authority.Command // with a request's conn
	expire  *authority.Expire
	offer   *authority.Offer
	load    bool // a reading, not a rule
	read    bool // of everything
}

// New returns the core of a fresh daemon.
func New(cfg Config) *Daemon {
	return &Daemon{cfg: cfg, watch: authority.NewWatch(cfg.Policy), txs: map[TxID]pending{}}
}

// Step takes in one event and returns what to do, in order. The slice is valid until the next Step. now must not run
// backward.
func (d *Daemon) Step(now forge.Instant, event Event) []Effect {
	d.effects = d.effects[:0]
	switch e := event.(type) {
	case Tick:
		d.tick(now)
	case Opened:
		d.conns = append(d.conns, &conn{id: e.Conn, runner: e.Runner, state: forge.ConnRegistering, opened: now})
	case Closed:
		d.forget(e.Conn)
	case Received:
		if c := d.conn(e.Conn); c != nil {
			d.receive(now, c, e.Frame)
		}
	case Done:
		d.done(now, e)
	case Loaded:
		d.loaded(now, e)
	case Place:
		d.place(e)
	}
	return d.effects
}

// Wake returns when the next Tick is due.
func (d *Daemon) Wake() forge.Instant {
	wake := forge.Never
	if !d.reading {
		wake = d.nextRead
	}
	for _, c := range d.conns {
		wake = min(wake, c.wake())
	}
	return wake
}

// Waiting returns how many frames of a connection were received and not answered yet. A shell that feeds a connection
// only while that is little bounds what a peer can make it hold.
func (d *Daemon) Waiting(id ConnID) int {
	c := d.conn(id)
	switch {
	case c == nil:
		return 0
	case c.current == nil:
		return len(c.queue)
	default:
		return len(c.queue) + 1
	}
}

func (d *Daemon) tick(now forge.Instant) {
	for _, c := range slices.Clone(d.conns) {
		if now >= c.wake() {
			reason := forge.CloseRegisterTimeout
			if c.condemned != 0 {
				reason = c.condemned
			}
			d.close(c, reason)
		}
	}
	if now >= d.nextRead && !d.reading {
		d.reading = true
		d.emit(Load{Tx: d.begin(pending{load: true, read: true})})
	}
}

// begin returns the id of a new transaction.
func (d *Daemon) begin(p pending) TxID {
	d.lastTx++
	d.txs[d.lastTx] = p
	return d.lastTx
}

// done goes on with whatever a transaction was for.
func (d *Daemon) done(now forge.Instant, e Done) {
	p, ok := d.txs[e.Tx]
	if !ok || p.load {
		return
	}
	delete(d.txs, e.Tx)
	if e.Answer.Audit != authority.AuditNone {
		audit := Audit{Kind: e.Answer.Audit, Command: p.command}
		if c := d.conn(p.conn); c != nil {
			audit.Runner = c.runner
		}
		d.emit(audit)
	}
	switch {
	case p.offer != nil:
		d.offered(p, e)
	case p.conn != 0:
		if c := d.conn(p.conn); c != nil {
			d.answered(now, c, e)
		}
	}
}

// loaded takes in a reading of the store.
func (d *Daemon) loaded(now forge.Instant, e Loaded) {
	p, ok := d.txs[e.Tx]
	if !ok || !p.load {
		return
	}
	delete(d.txs, e.Tx)
	if !p.read {
		if c := d.conn(p.conn); c != nil {
			d.resyncLoaded(now, c, e)
		}
		return
	}
	d.reading = false
	d.nextRead = now.Add(ReadEvery)
	if e.Snapshot != nil {
		d.observe(now, e.Snapshot)
	}
}

func (d *Daemon) emit(e Effect) { d.effects = append(d.effects, e) }

func (d *Daemon) conn(id ConnID) *conn {
	for _, c := range d.conns {
		if c.id == id {
			return c
		}
	}
	return nil
}

// voice returns the active connection that speaks for a runner here, or nil.
func (d *Daemon) voice(runner forge.RunnerID) *conn {
	for _, c := range d.conns {
		if c.runner == runner && c.state == forge.ConnActive {
			return c
		}
	}
	return nil
}

// close ends a connection and forgets it.
func (d *Daemon) close(c *conn, reason forge.CloseReason) {
	d.emit(Close{Conn: c.id, Reason: reason})
	d.forget(c.id)
}

func (d *Daemon) forget(id ConnID) {
	d.conns = slices.DeleteFunc(d.conns, func(c *conn) bool { return c.id == id })
}

// send writes a frame. re is the id of the request that it answers, or zero.
func (d *Daemon) send(c *conn, re forge.MessageID, m forge.Message) {
	d.emit(Send{Conn: c.id, Frame: forge.Frame{ID: d.messageID(), Re: re, Body: m}})
}

// messageID returns a new message id: the seed's bits with a counter.
func (d *Daemon) messageID() forge.MessageID {
	d.counter++
	var id forge.MessageID
	for i := range 8 {
		id.ULID[i] = byte(d.cfg.Seed >> (56 - 8*i))
		id.ULID[8+i] = byte(d.counter >> (56 - 8*i))
	}
	return id
}
