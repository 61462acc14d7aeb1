package launch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// launcher is the launcher process. Everything without a remark belongs to the loop.
type launcher struct {
	cfg     sandbox.Configure // does not change but for its View
	agent   *packet.Conn
	out     *outbox
	cloner  *cloner
	alarm   *alarm
	events  chan func() // of cells and the reader, for the loop to do
	null    *os.File
	lock    *os.File
	mountNS *os.File
	userNS  *os.File
	uid     uint32 // whose folders attempts most likely are
	gid     uint32
	tree    *cgroup.Tree // nil where there are none
	groups  cgroup.Report
	report  sandbox.Report // also read by cells that have an order, when it does not change any more
	disks   *disks         // nil where there can be none
	diskErr chan error     // takes one value, when disks is not nil: whether there can be some

	setups   *setups
	slots    *slots
	cells    map[*cell]struct{}
	boxes    map[uint64]*cell
	serial   uint64
	failures int
	calm     *time.Timer // fires when the pool is to be filled again
	filling  bool        // calm was set and has not fired
	opened   bool        // the agent has heard that sandboxes can be built
	ending   bool

	spacesMu sync.Mutex
	spaces   map[spaceKey]*os.File
}

// loop does what there is to do, until the agent has gone and no cell is left.
func (l *launcher) loop() {
	go l.read()
	l.newCell(forge.NetworkNone, sandbox.DefaultShm)
	for !l.ending || len(l.cells) > 0 {
		select {
		case do := <-l.events:
			do()
		case <-l.alarm.rings:
			l.watch()
		case <-l.calm.C:
			l.filling = false
			l.refill()
		}
	}
}

// lastPatience is how long the launcher may live without an agent, whatever holds it up.
const lastPatience = 30 * time.Second

// read hands the agent's requests to the loop, until the agent has gone. It ends with the process.
func (l *launcher) read() {
	for {
		var r sandbox.Request
		files, err := l.agent.Receive(&r)
		if err != nil {
			time.AfterFunc(lastPatience, func() { os.Exit(1) }) // and pid 1 of each sandbox dies with it
			l.events <- l.end
			return
		}
		l.events <- func() { l.hear(&r, files) }
	}
}

func (l *launcher) hear(r *sandbox.Request, files []*os.File) {
	if r.Make != nil {
		l.order(&errand{MakeRequest: *r.Make, files: files})
		return
	}
	packet.CloseFiles(files)
	switch {
	case r.View != nil:
		l.cfg.View = *r.View
		l.renew()
	case r.Move != nil:
		if c := l.boxes[r.Move.ID]; c != nil {
			c.dog.Move(r.Move.Deadline)
			c.move(c.dog.Deadline())
			l.watch()
		}
	case r.Kill != 0:
		if c := l.boxes[r.Kill]; c != nil {
			c.kill()
		}
	case r.Usage != 0:
		if c := l.boxes[r.Usage]; c != nil {
			c.ask()
		}
	}
}

// end kills everything, because the agent has gone.
func (l *launcher) end() {
	l.ending = true
	for c := range l.cells {
		c.kill()
	}
}

// cannot tells the agent that no sandbox can be built, and ends.
func (l *launcher) cannot(err error) {
	l.opened = true
	l.out.put(sandbox.Answer{Failed: err.Error()}, nil)
	l.end()
}

// order gives an order to a cell, or refuses it.
func (l *launcher) order(e *errand) {
	c, refused := l.place(e)
	if refused != nil {
		refused.ID = e.ID
		packet.CloseFiles(e.files)
		l.out.put(sandbox.Answer{Refused: refused}, nil)
		return
	}
	c.errand = e
	c.dog = watchdog.New(later(e.Policy), e.Deadline)
	l.boxes[e.ID] = c
	c.orders <- e
	l.failures = 0
	l.refillSoon()
	l.watch()
}

// place finds or makes a cell for an order.
func (l *launcher) place(e *errand) (*cell, *sandbox.Refused) {
	for _, level := range e.Need {
		if !l.report.Has(level) {
			return nil, &sandbox.Refused{Level: level, Text: l.report.Sorry(level)}
		}
	}
	if l.ending || len(e.files) != orderFiles-1 || l.boxes[e.ID] != nil {
		return nil, &sandbox.Refused{Text: "the order makes no sense"}
	}
	if len(l.boxes) >= l.cfg.Slots {
		return nil, &sandbox.Refused{NoSlot: true}
	}
	shm := cmp.Or(e.Limits.Shm, sandbox.DefaultShm)
	c := l.waiting(e.Network, shm)
	if c == nil {
		c = l.newCell(e.Network, shm)
	}
	if c == nil {
		return nil, &sandbox.Refused{NoSlot: true}
	}
	return c, nil
}

// later is a policy by which the launcher kills half-way between pid 1's own kill and the deadline.
func later(p forge.LeasePolicy) forge.LeasePolicy {
	p.SoftGrace = (p.SoftGrace + p.KillLead) / 2
	return p
}

// runs is told that a cell's guest runs.
func (l *launcher) runs(c *cell) {
	c.made = true
	made := &sandbox.Made{ID: c.errand.ID, Pid: c.pid()}
	files := c.surrender(made)
	l.out.put(sandbox.Answer{Made: made}, files)
}

// over is told that nothing of a cell is alive.
func (l *launcher) over(c *cell, o *outcome) {
	delete(l.cells, c)
	l.slots.free(c.slot)
	packet.CloseFiles(c.surrender(&sandbox.Made{}))
	switch {
	case c.errand != nil:
		delete(l.boxes, c.errand.ID)
		l.conclude(c, o)
	case !l.opened:
		l.cannot(o.err)
	case o.err != nil && !o.end.Killed:
		l.failures++
		l.notice("build a sandbox ahead: %v", o.err)
	}
	l.refill()
}

// conclude reports the end of an order. One that a cell could not keep because pid 1 had gone is tried once more: somebody
// killed a sandbox that waited.
func (l *launcher) conclude(c *cell, o *outcome) {
	e := c.errand
	lost := errors.Is(o.err, errGone)
	if lost && !e.again && !o.end.Killed && !l.ending {
		e.again = true
		l.order(e)
		return
	}
	if lost || len(c.orders) > 0 {
		packet.CloseFiles(e.files)
	}
	c.tell(o)
}

// watch carries out what the dogs say, and sets the alarm for what they say next.
func (l *launcher) watch() {
	next, now := forge.Never, clock.Boot()
	for _, c := range l.boxes {
		if c.dog.Step(now) == watchdog.Hard {
			c.bitten = true
			c.kill()
		}
		next = min(next, c.dog.Wake())
	}
	l.alarm.set(next)
}

// notice is for the agent's log.
func (l *launcher) notice(format string, args ...any) {
	l.out.put(sandbox.Answer{Notice: fmt.Sprintf(format, args...)}, nil)
}
