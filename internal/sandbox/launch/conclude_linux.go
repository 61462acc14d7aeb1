package launch

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

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
	if c.mounts != nil {
		_ = c.mounts.Close() // which takes the mounts down, before anybody hears that the sandbox is done
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
	if err := c.group.Discard(); err != nil {
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

// surrender returns what the agent gets of a sandbox that runs, each once, and notes in what is said of it what there is: the
// descriptor of pid 1, the attempt's folder if that is not what it was, and the root of its disk. The caller closes the files.
func (c *cell) surrender(m *sandbox.Made) []*os.File {
	c.mu.Lock()
	defer c.mu.Unlock()
	var files []*os.File
	if c.child.pidfd != nil {
		files = append(files, c.child.pidfd)
	}
	if c.tree != nil {
		m.Tree = true
		files = append(files, c.tree)
	}
	if c.image != nil {
		m.Disk = c.image.Device
		files = append(files, c.image.Watch)
	}
	c.child.pidfd, c.tree, c.image = nil, nil, nil
	return files
}

// tell reports the end of an order. Of the loop.
func (c *cell) tell(o *outcome) {
	id := c.errand.ID
	if !c.made {
		text := "it was killed"
		if o.err != nil {
			text = o.err.Error()
		}
		c.l.out.put(sandbox.Answer{Refused: &sandbox.Refused{ID: id, NoDisk: o.noDisk, Flat: o.flat, Text: text}}, nil)
		return
	}
	o.end.Bitten = c.bitten && o.end.Signal == unix.SIGKILL
	o.end.Killed = o.end.Killed && !c.bitten && o.end.Signal == unix.SIGKILL
	c.l.out.put(sandbox.Answer{Ended: &sandbox.Ended{ID: id, End: o.end}}, nil)
}
