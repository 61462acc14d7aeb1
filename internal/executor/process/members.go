package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor/keeper"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// members are the processes of a local workload: the group of each step.
type members struct {
	exits   chan keeper.Exit
	group   *group
	read    func(forge.LogStream, *os.File)
	started atomic.Uint64
	closed  chan struct{}
	waiters sync.WaitGroup

	mu      sync.Mutex
	reading []chan struct{} // closed by each reader at its end
	pipes   []*os.File
}

// memberPause is between two looks at whether a group is empty.
const memberPause = 10 * time.Millisecond

func newMembers(read func(forge.LogStream, *os.File)) (*members, error) {
	g, err := newGroup()
	if err != nil {
		return nil, err
	}
	return &members{exits: make(chan keeper.Exit, 1), group: g, read: read, closed: make(chan struct{})}, nil
}

// Starts counts programs.
func (m *members) Starts() uint64 { return m.started.Load() }

// Soft asks every group to end.
func (m *members) Soft() { m.group.soft() }

// Kill kills every group.
func (m *members) Kill() { m.group.kill() }

// Remarks has none.
func (m *members) Remarks() []string { return nil }

// AsStep has nothing to change: the steps have this process's rights.
func (m *members) AsStep(act func()) { act() }

// Start starts a program with pipes of its own.
func (m *members) Start(argv []string, dir string, env []string) (int, error) {
	path, err := keeper.LookPath(argv[0], dir, env)
	if err != nil {
		return 0, err
	}
	cmd := &exec.Cmd{Path: path, Args: argv, Dir: dir, Env: env}
	ends, err := m.pipe(cmd)
	if err == nil {
		err = m.group.start(cmd)
	}
	for _, end := range ends {
		err = errors.Join(err, end.Close())
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, fmt.Errorf("%s: %w, or the interpreter that it names is not", argv[0], keeper.ErrNotFound)
	case err != nil:
		return 0, fmt.Errorf("%s: %w", argv[0], err)
	}
	m.started.Add(1)
	m.waiters.Go(func() { m.wait(cmd) })
	return cmd.Process.Pid, nil
}

// pipe gives a command its pipes, starts their readers, and returns the ends that the command gets.
func (m *members) pipe(cmd *exec.Cmd) ([]*os.File, error) {
	var ends []*os.File
	for _, stream := range []forge.LogStream{forge.LogStdout, forge.LogStderr} {
		r, w, err := os.Pipe()
		if err != nil {
			return ends, err
		}
		ends = append(ends, w)
		ended := make(chan struct{})
		m.mu.Lock()
		m.reading, m.pipes = append(m.reading, ended), append(m.pipes, r)
		m.mu.Unlock()
		go func() {
			defer close(ended)
			m.read(stream, r)
		}()
		if stream == forge.LogStdout {
			cmd.Stdout = w
		} else {
			cmd.Stderr = w
		}
	}
	return ends, nil
}

// wait waits for a step's program, and then for the group to be empty.
func (m *members) wait(cmd *exec.Cmd) {
	err := cmd.Wait()
	e := keeper.Exit{ID: cmd.Process.Pid, Code: keeper.CodeCannotRun}
	if state := cmd.ProcessState; state != nil {
		e.Code, e.Signal = endOf(state)
	} else if err == nil {
		e.Code = 0
	}
	if !m.send(e) {
		return
	}
	look := time.NewTicker(memberPause)
	defer look.Stop()
	for {
		starts := m.started.Load()
		if m.group.empty() {
			m.send(keeper.Exit{None: true, Starts: starts})
			return
		}
		select {
		case <-look.C:
		case <-m.closed:
			return
		}
	}
}

func (m *members) send(e keeper.Exit) bool {
	select {
	case m.exits <- e:
		return true
	case <-m.closed:
		return false
	}
}

// drained waits until the readers have come to an end, or drainPatience has passed.
func (m *members) drained() {
	patience := time.NewTimer(drainPatience)
	defer patience.Stop()
	m.mu.Lock()
	reading := m.reading
	m.mu.Unlock()
	for _, ended := range reading {
		select {
		case <-ended:
		case <-patience.C:
			return
		}
	}
}

// close ends waiters and readers. Nothing of the workload lives any more, so a reader that waits would wait for a process
// that got away.
func (m *members) close() {
	close(m.closed)
	m.waiters.Wait()
	m.group.close()
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, pipe := range m.pipes {
		_ = pipe.Close() // the reader may have closed it
		<-m.reading[i]
	}
}
