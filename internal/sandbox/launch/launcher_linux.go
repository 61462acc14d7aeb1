package launch

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// heapBytes is what the launcher's heap is to stay below: a fork with a user namespace copies its page tables.
const heapBytes = 24 << 20

// maxFailures is how many sandboxes in a row may fail to be built ahead before that waits for the next order.
const maxFailures = 3

// refillPause is how long after an order the pool is filled again, so that building does not take the processor away
// from what was ordered.
const refillPause = 20 * time.Millisecond

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
	report  sandbox.Report

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

// runLauncher is the launcher's main. Its exit code is 0 when its agent has gone and nothing is alive.
func runLauncher() int {
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(heapBytes)
	l := &launcher{
		events: make(chan func()), cells: map[*cell]struct{}{}, boxes: map[uint64]*cell{}, spaces: map[spaceKey]*os.File{},
		calm: time.NewTimer(refillPause),
	}
	if err := l.begin(); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: this is for the agent itself: %v\n", sandbox.LauncherArg, err)
		return 2
	}
	l.out = newOutbox(l.agent)
	if err := l.configure(); err != nil {
		l.out.put(sandbox.Answer{Failed: err.Error()}, nil)
		l.out.close()
		return 1
	}
	l.loop()
	l.out.close()
	if err := l.tree.Close(); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// begin makes this process the launcher.
func (l *launcher) begin() error {
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil { // whatever the agent had inherited
		return fmt.Errorf("close descriptors: %w", err)
	}
	agent, err := packet.New(sandbox.LauncherFDAgent, "agent")
	if err != nil {
		return err
	}
	l.agent = agent
	l.lock = os.NewFile(sandbox.LauncherFDLock, "lock")
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("become undumpable: %w", err)
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	core.Cur = 0 // pid 1 of a sandbox does the same with the hard limit
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	ignoreSignals()
	for _, open := range []struct {
		to   **os.File
		path string
	}{{&l.null, os.DevNull}, {&l.mountNS, "/proc/self/ns/mnt"}, {&l.userNS, "/proc/self/ns/user"}} {
		if *open.to, err = os.Open(open.path); err != nil {
			return err
		}
	}
	if l.alarm, err = newAlarm(); err != nil {
		return err
	}
	l.cloner = newCloner()
	return nil
}

// configure takes the agent's first request.
func (l *launcher) configure() error {
	var first sandbox.Request
	files, err := l.agent.Receive(&first)
	packet.CloseFiles(files)
	switch {
	case err != nil:
		return fmt.Errorf("the agent's first request: %w", err)
	case first.Configure == nil:
		return errors.New("the agent's first request is not its configuration")
	}
	l.cfg = *first.Configure
	r, err := sandbox.NewRecord(os.Getpid())
	if err == nil {
		err = r.Fill(l.lock)
	}
	if err != nil {
		return fmt.Errorf("record of the launcher: %w", err)
	}
	l.uid, l.gid = uint32(os.Geteuid()), uint32(os.Getegid())
	if !l.cfg.Rootless {
		if err := syscall.Setgroups(nil); err != nil {
			return fmt.Errorf("leave groups: %w", err)
		}
	}
	if !l.cfg.NoCgroups {
		l.tree, l.groups = cgroup.Open(cgroup.Config{State: l.cfg.State, Agent: l.cfg.Agent})
		l.sweep()
	}
	l.slots = newSlots(sandbox.Ranges(l.cfg.Slots, l.cfg.Pool))
	l.setups, err = newSetups(&l.cfg)
	return err
}

// sweep removes control groups that earlier launchers left, and lets the kernel take a sandbox's memory before the launcher's.
func (l *launcher) sweep() {
	if l.tree == nil {
		return
	}
	if _, err := l.tree.Sweep(); err != nil {
		l.notice("%v", err)
	}
	if err := cgroup.Protect(os.Getpid()); err != nil { // what it starts is exposed again, when it joins its group
		l.notice("%v", err)
	}
}

// loop does what there is to do, until the agent has gone and no cell is left.
func (l *launcher) loop() {
	go l.read()
	if _, err := l.newCell(forge.NetworkNone, sandbox.DefaultShm); err != nil {
		l.cannot(err)
	}
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

// read hands the agent's requests to the loop, until the agent has gone. It ends with the process.
func (l *launcher) read() {
	for {
		var r sandbox.Request
		files, err := l.agent.Receive(&r)
		if err != nil {
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

// newCell begins to build a sandbox.
func (l *launcher) newCell(network forge.Network, shm forge.Bytes) (*cell, error) {
	slot, ok := l.slots.take()
	if !ok {
		return nil, sandbox.ErrNoSlot
	}
	l.serial++
	c := &cell{
		l: l, slot: slot, serial: l.serial, network: network, shm: shm, age: l.setups.age, setup: l.setups.of(network, shm),
		orders: make(chan *errand, 1), moved: make(chan struct{}, 1), asked: make(chan struct{}, 1),
	}
	l.cells[c] = struct{}{}
	go c.run()
	return c, nil
}

// fits reports whether a cell that waits can be given to an order.
func (c *cell) fits(network forge.Network, shm forge.Bytes) bool {
	return c.errand == nil && !c.wasKilled() && c.age == c.l.setups.age && c.network == network && c.shm == shm
}

func (c *cell) wasKilled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.killed
}

// order gives an order to a cell.
func (l *launcher) order(e *errand) {
	refuse := func(r sandbox.Refused) {
		r.ID = e.ID
		packet.CloseFiles(e.files)
		l.out.put(sandbox.Answer{Refused: &r}, nil)
	}
	for _, level := range e.Need {
		if !l.report.Has(level) {
			refuse(sandbox.Refused{Level: level, Text: l.report.Sorry(level)})
			return
		}
	}
	switch {
	case l.ending || len(e.files) != orderFiles-1 || l.boxes[e.ID] != nil:
		refuse(sandbox.Refused{Text: "the order makes no sense"})
		return
	case len(l.boxes) >= l.cfg.Slots:
		refuse(sandbox.Refused{NoSlot: true})
		return
	}
	shm := e.Limits.Shm
	if shm == 0 {
		shm = sandbox.DefaultShm
	}
	c := l.waiting(e.Network, shm)
	if c == nil {
		var err error
		if c, err = l.newCell(e.Network, shm); err != nil {
			refuse(sandbox.Refused{Text: err.Error()})
			return
		}
	}
	c.errand = e
	c.dog = watchdog.New(later(e.Policy), e.Deadline)
	l.boxes[e.ID] = c
	c.orders <- e
	l.failures = 0
	l.refillSoon()
	l.watch()
}

// later is a policy by which the launcher kills half-way between pid 1's own kill and the deadline.
func later(p forge.LeasePolicy) forge.LeasePolicy {
	p.SoftGrace = (p.SoftGrace + p.KillLead) / 2
	return p
}

// waiting returns a cell for an order, one that is ready before one that is being built.
func (l *launcher) waiting(network forge.Network, shm forge.Bytes) *cell {
	var found *cell
	for c := range l.cells {
		if c.fits(network, shm) && (found == nil || c.ready && !found.ready) {
			found = c
		}
	}
	return found
}

// refill keeps as many cells waiting as there are to be, and no others.
func (l *launcher) refill() {
	waiting := 0
	for c := range l.cells {
		switch {
		case c.errand != nil || c.wasKilled():
		case l.opened && (waiting == l.cfg.Pool || !c.fits(forge.NetworkNone, sandbox.DefaultShm)):
			c.kill()
		default:
			waiting++
		}
	}
	for waiting < l.cfg.Pool && l.opened && !l.ending && l.failures < maxFailures {
		if _, err := l.newCell(forge.NetworkNone, sandbox.DefaultShm); err != nil {
			if !errors.Is(err, sandbox.ErrNoSlot) { // slots of cells that are ending come back
				l.failures = maxFailures
				l.notice("build a sandbox ahead: %v", err)
			}
			return
		}
		waiting++
	}
}

// refillSoon fills the pool when what was just ordered has had its turn.
func (l *launcher) refillSoon() {
	if !l.filling {
		l.filling = true
		l.calm.Reset(refillPause)
	}
}

// renew builds the pool anew, for a view that has changed.
func (l *launcher) renew() {
	next, err := newSetups(&l.cfg)
	if err != nil {
		l.notice("the view stays as it was: %v", err)
		return
	}
	next.age = l.setups.age + 1
	l.setups = next
	l.failures = 0
	l.refill()
}

// readied is told that a cell waits for its order.
func (l *launcher) readied(c *cell, hidden bool) {
	c.ready = true
	l.failures = 0
	if !l.opened {
		l.opened = true
		l.report = l.levels(hidden)
		report := l.report
		l.out.put(sandbox.Answer{Ready: &report}, nil)
		l.refill()
	}
}

// runs is told that a cell's guest runs.
func (l *launcher) runs(c *cell) {
	c.made = true
	l.out.put(sandbox.Answer{Made: &sandbox.Made{ID: c.errand.ID, Pid: c.pid()}}, c.surrender())
}

// over is told that nothing of a cell is alive.
func (l *launcher) over(c *cell, o *outcome) {
	delete(l.cells, c)
	l.slots.free(c.slot)
	select {
	case e := <-c.orders: // it ended before it took it
		packet.CloseFiles(e.files)
	default:
	}
	if file := c.surrender(); file != nil {
		_ = file.Close()
	}
	switch {
	case c.errand != nil:
		delete(l.boxes, c.errand.ID)
		c.tell(o)
	case !l.opened:
		l.cannot(o.err)
	case o.err != nil && !o.end.Killed:
		l.failures++
		l.notice("build a sandbox ahead: %v", o.err)
	}
	l.refill()
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
