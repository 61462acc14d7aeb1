package launch

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/image"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
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
	mounts *os.File // its mount namespace; nil without
	hidden bool

	mu       sync.Mutex
	child    child
	tree     *os.File     // the attempt's folder with its layers and on its disk, for the agent; nil without both
	image    *image.Image // the attempt's disk, of which only Watch is open; nil without
	killed   bool
	deadline forge.Instant
}

// errGone says that pid 1 ended before the guest ran, and not why.
var errGone = errors.New("pid 1 of a sandbox ended while it was set up")

// errand is what a cell is made for.
type errand struct {
	sandbox.MakeRequest
	files []*os.File // keeper, stdout, stderr, guest; the cell closes them, unless it ends with errGone
	again bool       // it was tried before
}

// outcome is how a cell ended.
type outcome struct {
	end    sandbox.End
	err    error // before the guest ran
	noDisk bool
	flat   bool // layers cannot be had here
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
	o.noDisk, o.flat = errors.Is(o.err, unix.ENOSPC), errors.Is(o.err, errNoLayers)
	c.l.events <- func() { c.l.over(c, &o) }
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
	if err == nil {
		err = c.expect(func(m fromInit) bool { return m.Running })
	}
	if !errors.Is(err, errGone) {
		packet.CloseFiles(e.files) // else another cell may need them
	}
	if err != nil {
		return err
	}
	c.l.events <- func() { c.l.runs(c) }
	return c.attend()
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
	return errGone
}

func (c *cell) pid() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.child.process.Pid
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

// ask has the cell say what was used so far.
func (c *cell) ask() {
	select {
	case c.asked <- struct{}{}:
	default: // it is about to
	}
}
