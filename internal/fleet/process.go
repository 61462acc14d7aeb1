//go:build linux

package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// process is one program that may be started many times, one at a time. What it says is appended to <name>.log.
type process struct {
	name   string
	folder string
	log    io.Writer
	forks  *forks

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
	code int
}

// start runs the program. Its exit code can be had from Exited.
func (p *process) start(program string, env []string, args ...string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.aliveLocked() {
		return fmt.Errorf("%s runs already", p.name)
	}
	out, err := os.OpenFile(p.LogFile(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }() // the program has its own
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Setpgid:   true, // a key pressed for us is not meant for it
		Pdeathsig: syscall.SIGKILL,
	}
	if err := p.forks.start(cmd); err != nil {
		return err
	}
	fmt.Fprintf(p.log, "%s starts as process %d\n", p.name, cmd.Process.Pid)
	done := make(chan struct{})
	p.cmd, p.done = cmd, done
	go func() {
		defer close(done)
		_ = cmd.Wait()
		p.mu.Lock()
		p.code = cmd.ProcessState.ExitCode()
		p.mu.Unlock()
	}()
	return nil
}

// LogFile is where the program's own output is.
func (p *process) LogFile() string { return filepath.Join(p.folder, p.name+".log") }

// PID is the id of the process, or of the one that ran last; 0 before the first.
func (p *process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return 0
	}
	return p.cmd.Process.Pid
}

// Alive reports whether it runs.
func (p *process) Alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.aliveLocked()
}

func (p *process) aliveLocked() bool {
	if p.done == nil {
		return false
	}
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends a signal to a process that runs.
func (p *process) Signal(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.aliveLocked() {
		return fmt.Errorf("%s does not run", p.name)
	}
	fmt.Fprintf(p.log, "%s (%d) gets %v\n", p.name, p.cmd.Process.Pid, s)
	return p.cmd.Process.Signal(s)
}

// Kill ends it with SIGKILL and waits for its end. It does nothing to a process that does not run.
func (p *process) Kill() {
	if err := p.Signal(syscall.SIGKILL); err != nil && p.Alive() {
		fmt.Fprintf(p.log, "%s: %v\n", p.name, err)
	}
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	if done != nil {
		<-done
	}
}

// Exited waits for its end and returns its exit code, -1 where a signal has ended it.
func (p *process) Exited(ctx context.Context) (int, error) {
	p.mu.Lock()
	done := p.done
	p.mu.Unlock()
	if done == nil {
		return 0, fmt.Errorf("%s was never started", p.name)
	}
	select {
	case <-done:
	case <-ctx.Done():
		return 0, fmt.Errorf("%s does not end: %w", p.name, context.Cause(ctx))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.code, nil
}

func killPID(pid int) error {
	err := syscall.Kill(pid, syscall.SIGKILL)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
