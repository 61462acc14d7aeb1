package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/image"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

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
	child, err := c.l.cloner.start(c.l.owner(c.slot), c.l.idsOf(c.slot), initArg, [3]*os.File{c.l.null, c.l.null, w},
		[]*os.File{other, c.l.lock}, insideAttributes(c.network))
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

// prepare has pid 1 build everything that does not depend on an order.
func (c *cell) prepare() error {
	if err := c.record(); err != nil {
		return err
	}
	if err := c.join(); err != nil {
		return err
	}
	c.keepMounts()
	handed, err := view.Open(c.setup.Plan)
	if err != nil {
		return err
	}
	err = c.say(&toInit{Setup: &c.setup}, append([]*os.File{c.l.mountNS, c.l.userNS}, handed...)...)
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

// keepMounts keeps the mounts of the sandbox until the launcher takes it apart: to take them down makes the kernel wait for all
// processors, and without this the end of pid 1 would wait for that.
func (c *cell) keepMounts() {
	mounts, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", c.pid()))
	if err == nil { // else pid 1 has gone, or its end takes longer, no more
		c.mounts = mounts
	}
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

// deliver gives pid 1 its order, and what only the launcher can make for it.
func (c *cell) deliver(e *errand) error {
	folder, err := c.shown(e)
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
	return c.say(&toInit{Order: o}, append([]*os.File{folder}, e.files...)...)
}

// shown is what pid 1 shows as the attempt's folder. Where that has layers, or a disk of its own, the agent gets its own copy.
func (c *cell) shown(e *errand) (*os.File, error) {
	disk, err := c.disk(e)
	if err != nil {
		return nil, err
	}
	if disk == nil && len(e.Layers) == 0 {
		return c.folder(e.Folder, nil)
	}
	inside, outside, err := c.built(e, disk)
	if disk != nil {
		_ = disk.Mount.Close() // what was made of it has its own
	}
	if err != nil {
		if disk != nil {
			_ = disk.Watch.Close()
		}
		return nil, err
	}
	c.mu.Lock()
	c.tree, c.image = outside, disk
	c.mu.Unlock()
	return inside, nil
}

// built builds the attempt's folder from what it has.
func (c *cell) built(e *errand, disk *image.Image) (inside, outside *os.File, err error) {
	if disk != nil {
		return c.onDisk(disk, e.Folder, e.Layers)
	}
	folder, err := c.folder(e.Folder, e.Layers)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = folder.Close() }()
	return c.layered(folder, e.Folder, e.Layers)
}

// say says something to pid 1.
func (c *cell) say(m *toInit, files ...*os.File) error {
	err := c.conn.Send(m, files...)
	if errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) {
		return errGone
	}
	return err
}
