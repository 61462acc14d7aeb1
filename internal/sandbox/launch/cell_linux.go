package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// cell is one sandbox, from its clone to the end of everything in it.
type cell struct {
	l       *launcher
	slot    int
	network forge.Network
	shm     forge.Bytes
	serial  uint64 // of all cells
	age     int    // of the view that it is built with
	setup   setup
	orders  chan *errand  // takes one
	moved   chan struct{} // a later deadline is there
	asked   chan struct{} // somebody wants to know the usage

	// Of the loop alone.
	errand *errand
	ready  bool
	made   bool
	bitten bool
	dog    watchdog.Dog

	// Of the cell's goroutine alone.
	said   chan fromInit // closed at the end of pid 1, or of what it says
	prints chan string   // takes what pid 1 printed, at its end
	conn   *packet.Conn
	group  *cgroup.Group
	hidden bool

	mu       sync.Mutex
	child    child
	killed   bool
	deadline forge.Instant
}

// errand is what a cell is made for.
type errand struct {
	sandbox.MakeRequest
	files []*os.File // keeper, stdout, stderr, guest; the cell closes them
}

// outcome is how a cell ended.
type outcome struct {
	end    sandbox.End
	err    error // before the guest ran
	noDisk bool
}

// run is the cell's goroutine: it lives the cell's life and reports its end to the loop.
func (c *cell) run() {
	var o outcome
	if o.err = c.begin(); o.err == nil {
		o.err = c.live()
		o.end.Killed = c.wasKilled()
		c.kill() // what has only closed its socket
		c.conclude(&o)
	}
	o.noDisk = errors.Is(o.err, unix.ENOSPC)
	c.l.events <- func() { c.l.over(c, &o) }
}

// begin clones the sandbox.
func (c *cell) begin() error {
	conn, other, err := packet.Pair("pid 1")
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	r, w, err := os.Pipe()
	if err != nil {
		return errors.Join(err, conn.Close())
	}
	defer func() { _ = w.Close() }()
	child, err := c.l.cloner.start(initArg, [3]*os.File{c.l.null, c.l.null, w}, []*os.File{other, c.l.lock},
		c.l.insideAttributes(c.slot, c.network))
	if err != nil {
		return errors.Join(c.l.explainClone(err), conn.Close(), r.Close())
	}
	c.conn, c.said, c.prints = conn, make(chan fromInit), make(chan string, 1)
	c.mu.Lock()
	c.child = child
	if c.killed {
		_ = child.process.Kill()
	}
	c.mu.Unlock()
	go c.listen()
	go c.collect(r)
	return nil
}

// explainClone says what keeps a sandbox from being cloned.
func (l *launcher) explainClone(err error) error {
	switch {
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("start a sandbox: %w; the agent's program must be executable for everybody", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EUSERS):
		return fmt.Errorf("start a sandbox: %w; this machine does not allow (so many) namespaces: see sysctl user.max_user_namespaces "+
			"and its neighbours", err)
	default:
		return fmt.Errorf("start a sandbox: %w", err)
	}
}

// listen hands on what pid 1 says. The cell joins it by said.
func (c *cell) listen() {
	defer close(c.said)
	for {
		var m fromInit
		files, err := c.conn.Receive(&m)
		packet.CloseFiles(files) // it has none to send
		if err != nil {
			return
		}
		c.said <- m
	}
}

// maxPrinted bounds what is kept of what pid 1 prints, which it does only when it breaks.
const maxPrinted = 4 << 10

// collect keeps the beginning of what pid 1 prints. The cell joins it by prints.
func (c *cell) collect(r *os.File) {
	text, _ := io.ReadAll(io.LimitReader(r, maxPrinted))
	_, _ = io.Copy(io.Discard, r)
	_ = r.Close()
	c.prints <- strings.TrimSpace(string(text))
}

// live leads the cell to its end. Its error is why the guest never ran.
func (c *cell) live() error {
	if err := c.prepare(); err != nil {
		return err
	}
	hidden := c.hidden
	c.l.events <- func() { c.l.readied(c, hidden) }
	var e *errand
	select {
	case e = <-c.orders:
	case _, more := <-c.said:
		return c.unexpected(more)
	}
	err := c.deliver(e)
	packet.CloseFiles(e.files)
	if err == nil {
		err = c.expect(func(m fromInit) bool { return m.Running })
	}
	if err != nil {
		return err
	}
	c.l.events <- func() { c.l.runs(c) }
	return c.attend()
}

// prepare has pid 1 build everything that does not depend on an order.
func (c *cell) prepare() error {
	if err := c.record(); err != nil {
		return err
	}
	if err := c.join(); err != nil {
		return err
	}
	handed, err := view.Open(c.setup.Plan)
	if err != nil {
		return err
	}
	err = c.conn.Send(&toInit{Setup: &c.setup}, append([]*os.File{c.l.mountNS, c.l.userNS}, handed...)...)
	packet.CloseFiles(handed)
	if err != nil {
		return err
	}
	if !c.l.cfg.Rootless {
		if _, err := c.l.spaceOf(spaceKey{c.slot, c.l.uid, c.l.gid}); err != nil { // ahead of the order that needs it
			return err
		}
	}
	return c.expect(func(m fromInit) bool {
		c.hidden = m.Hidden
		return m.Ready
	})
}

// expect waits for one word of pid 1.
func (c *cell) expect(good func(fromInit) bool) error {
	m, more := <-c.said
	switch {
	case !more:
		return c.unexpected(false)
	case m.Failed != "":
		return errors.New(m.Failed)
	case !good(m):
		return c.unexpected(true)
	}
	return nil
}

func (c *cell) unexpected(spoke bool) error {
	if spoke {
		return errors.New("pid 1 of a sandbox said something out of turn")
	}
	return errors.New("pid 1 of a sandbox ended while it was set up")
}

// deliver gives pid 1 its order, and what only the launcher can make for it.
func (c *cell) deliver(e *errand) error {
	folder, err := c.folder(e.Folder)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	if c.group != nil {
		if err := c.group.Limit(cgroup.Limits{Memory: e.Limits.Memory, CPU: e.Limits.CPU, Pids: e.Limits.Pids}); err != nil {
			return err
		}
	}
	c.mu.Lock()
	deadline := max(c.deadline, e.Deadline)
	c.mu.Unlock()
	o := &order{Policy: e.Policy, Deadline: deadline}
	if c.group == nil || !c.l.groups.Pids.Given {
		o.Processes = uint64(max(0, e.Limits.Pids))
	}
	return c.conn.Send(&toInit{Order: o}, append([]*os.File{folder}, e.files...)...)
}

// join puts pid 1 into a control group, where there are any. Moving a process costs more than the rest of an order, so it
// is done before there is one; its name is that of the slot and not the attempt's.
func (c *cell) join() error {
	if c.l.tree == nil {
		return nil
	}
	var err error
	c.group, err = c.l.tree.Make(fmt.Sprintf("slot-%d.%d.%d", c.slot, os.Getpid(), c.serial), cgroup.Limits{})
	if err != nil {
		return err
	}
	return c.group.Add(c.pid())
}

func (c *cell) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.child.process.Pid
}

// recordPath is of a file that is there while something of the sandbox may be alive.
func (c *cell) recordPath() string {
	return filepath.Join(c.l.cfg.State, strconv.Itoa(c.slot)+sandbox.RecordSuffix)
}

func (c *cell) record() error {
	r, err := sandbox.NewRecord(c.pid())
	if err != nil {
		return err
	}
	return r.WriteRecord(c.recordPath())
}

// attend passes later deadlines on until pid 1 ends.
func (c *cell) attend() error {
	for {
		select {
		case _, more := <-c.said:
			if !more {
				return nil
			}
		case <-c.moved:
			c.mu.Lock()
			deadline := c.deadline
			c.mu.Unlock()
			if c.conn.Send(&toInit{Move: deadline}) != nil {
				return nil
			}
		case <-c.asked:
			c.report()
		}
	}
}

// report says what was used so far, as far as that is measured.
func (c *cell) report() {
	used := &sandbox.Used{}
	if c.group != nil {
		var err error
		if used.Usage, err = c.group.Usage(); err != nil {
			c.l.notice("%v", err)
		}
	}
	c.l.events <- func() {
		used.ID = c.errand.ID
		c.l.out.put(sandbox.Answer{Used: used}, nil)
	}
}

// conclude waits until nothing is alive, and takes apart what the launcher made.
func (c *cell) conclude(o *outcome) {
	state, err := c.child.process.Wait() // which is after the end of every process of the namespace
	if err != nil {
		c.l.notice("wait for a sandbox: %v", err)
	} else if status, ok := state.Sys().(syscall.WaitStatus); ok {
		if status.Signaled() {
			o.end.Signal = status.Signal()
		} else {
			o.end.Exit = status.ExitStatus()
		}
	}
	_ = c.conn.Close()
	for range c.said {
	}
	if printed := <-c.prints; printed != "" {
		if o.err != nil {
			o.err = fmt.Errorf("%w: %s", o.err, printed)
		} else {
			o.end.SetupErr = printed
		}
	}
	c.disband(o)
	if err := os.Remove(c.recordPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		c.l.notice("record of a sandbox: %v", err)
	}
}

// disband reads and removes the control group.
func (c *cell) disband(o *outcome) {
	if c.group == nil {
		return
	}
	usage, err := c.group.Usage()
	if err != nil {
		c.l.notice("%v", err)
	}
	o.end.Usage = usage
	if err := errors.Join(c.group.Kill(), c.group.Remove()); err != nil {
		c.l.notice("%v", err)
	}
}

// kill ends everything in the sandbox, now or as soon as it is cloned.
func (c *cell) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.killed = true
	if c.child.process != nil {
		_ = c.child.process.Kill() // an error means that it has gone
	}
}

// move notes a later deadline for pid 1.
func (c *cell) move(deadline forge.Instant) {
	c.mu.Lock()
	c.deadline = max(c.deadline, deadline)
	c.mu.Unlock()
	select {
	case c.moved <- struct{}{}:
	default:
	}
}

// surrender returns the descriptor of pid 1, which the caller closes, or nil where there is none any more.
func (c *cell) surrender() *os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.child.pidfd
	c.child.pidfd = nil
	return f
}

// ask has the cell say what was used so far.
func (c *cell) ask() {
	select {
	case c.asked <- struct{}{}:
	default: // it is about to
	}
}

// tell reports the end of an order. Of the loop.
func (c *cell) tell(o *outcome) {
	id := c.errand.ID
	if !c.made {
		text := "it was killed"
		if o.err != nil {
			text = o.err.Error()
		}
		c.l.out.put(sandbox.Answer{Refused: &sandbox.Refused{ID: id, NoDisk: o.noDisk, Text: text}}, nil)
		return
	}
	o.end.Bitten = c.bitten && o.end.Signal == unix.SIGKILL
	o.end.Killed = o.end.Killed && !c.bitten && o.end.Signal == unix.SIGKILL
	c.l.out.put(sandbox.Answer{Ended: &sandbox.Ended{ID: id, End: o.end}}, nil)
}
