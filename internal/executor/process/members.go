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

	"github.com/forgeyard/forgeyard/internal/forge"
)

// members are the processes of a local workload: the group of each step.
type members struct {
	exits   chan exit
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
	return &members{exits: make(chan exit, 1), group: g, read: read, closed: make(chan struct{})}, nil
}

func (m *members) starts() uint64 { return m.started.Load() }
func (m *members) soft()          { m.group.soft() }
func (m *members) kill()          { m.group.kill() }

// start starts a program with pipes of its own.
func (m *members) start(argv []string, dir string, env []string) (int, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return 0, fmt.Errorf("its folder %s is not there", dir)
	}
	path, err := lookPath(argv[0], dir, env)
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
		return 0, fmt.Errorf("%s: %w, or the interpreter that it names is not", argv[0], errNotFound)
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
	e := exit{id: cmd.Process.Pid, code: codeCannotRun}
	if state := cmd.ProcessState; state != nil {
		e.code, e.signal = endOf(state)
	} else if err == nil {
		e.code = 0
	}
	if !m.send(e) {
		return
	}
	look := time.NewTicker(memberPause)
	defer look.Stop()
	for {
		starts := m.started.Load()
		if m.group.empty() {
			m.send(exit{none: true, starts: starts})
			return
		}
		select {
		case <-look.C:
		case <-m.closed:
			return
		}
	}
}

func (m *members) send(e exit) bool {
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
