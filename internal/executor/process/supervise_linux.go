package process

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// superviseArg is the argument by which an executable knows that it is to be a supervisor.
const superviseArg = "supervise-one-attempt"

// The descriptors of a supervisor.
const (
	fdNull   = 0
	fdAgent  = 3
	fdStdout = 4
	fdStderr = 5
)

// umask of the steps.
const stepUmask = 0o022

// Supervise becomes a supervisor, and does not return, if this process was started as one by an Executor. Every main, and
// every TestMain of tests that run attempts, calls it before anything else.
func Supervise() {
	if len(os.Args) == 2 && os.Args[1] == superviseArg {
		os.Exit(supervise())
	}
}

// supervise runs one attempt. Its exit code is 0 when everything is over and said.
func supervise() int {
	runtime.LockOSThread() // whose end would kill the steps, as they ask for
	if err := becomeSupervisor(); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: this is for the agent itself: %v\n", superviseArg, err)
		return 2
	}
	agent := os.NewFile(fdAgent, "agent")
	in := make(chan request)
	go readRequests(agent, in)
	first, ok := <-in
	if !ok || first.Setup == nil {
		return 2
	}
	out := make(chan report, reportsPerStep*len(first.Setup.Steps)+8)
	written := make(chan struct{})
	go writeReports(agent, out, written)

	f := newFamily()
	go f.reap()
	out <- report{Ready: true}
	a, err := newAlarm()
	if err != nil {
		return 2
	}
	newMachine(first.Setup, f, a, func(r report) { out <- r }).run(in, f.exits)
	if first.Setup.SecretsDir != "" {
		_ = os.RemoveAll(first.Setup.SecretsDir) // the agent removes it again, and reports what is in the way
	}
	close(out)
	<-written
	return 0
}

// reportsPerStep bounds what is said about a step, so that a machine never waits for an agent that is stopped.
const reportsPerStep = 5

// becomeSupervisor sets up what the steps inherit, and what keeps them in.
func becomeSupervisor() error {
	if err := unix.SetNonblock(fdAgent, true); err != nil {
		return fmt.Errorf("descriptor %d: %w", fdAgent, err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil { // its memory holds secrets
		return fmt.Errorf("become undumpable: %w", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core dumps: %w", err)
	}
	if err := unix.CloseRange(3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); err != nil { // whatever the agent had inherited
		return fmt.Errorf("close descriptors: %w", err)
	}
	unix.Umask(stepUmask)
	// Handled here, so that they have their usual meaning again in the steps, even if the agent ignores them. Nobody but
	// the agent ends a supervisor, except by SIGKILL.
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGPIPE, unix.SIGALRM,
		unix.SIGUSR1, unix.SIGUSR2, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU)
	return nil
}

// readRequests hands on what the agent says, until it is gone. It ends with the process.
func readRequests(agent *os.File, in chan<- request) {
	defer close(in)
	r := newMessages(agent)
	for {
		var q request
		if r.next(&q) != nil {
			return
		}
		in <- q
	}
}

// writeReports tells the agent what there is, and goes on to take it in if nobody listens.
func writeReports(agent *os.File, out <-chan report, written chan<- struct{}) {
	defer close(written)
	var gone error
	for r := range out {
		if gone == nil {
			gone = writeMessage(agent, &r)
		}
	}
}

// family is everything that descends from this process.
type family struct {
	exits   chan exit
	started atomic.Uint64
	wake    chan struct{} // a program was started

	// mu is held while a program is started, so that its end is not taken for an orphan's before its id is known.
	mu   sync.Mutex
	main int // id of the program that was started last
}

func newFamily() *family { return &family{exits: make(chan exit), wake: make(chan struct{}, 1)} }

func (f *family) starts() uint64 { return f.started.Load() }

// start runs a program in a session of its own, without a terminal, with nothing to read.
func (f *family) start(argv []string, dir string, env []string) (int, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return 0, fmt.Errorf("its folder %s is not there", dir)
	}
	path, err := lookPath(argv[0], dir, env)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	pid, err := syscall.ForkExec(path, argv, &syscall.ProcAttr{
		Dir: dir, Env: env, Files: []uintptr{fdNull, fdStdout, fdStderr},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	f.main = pid
	f.started.Add(1)
	select {
	case f.wake <- struct{}{}:
	default:
	}
	return pid, explain(argv[0], err)
}

// explain puts what execve says into words.
func explain(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENOENT):
		return fmt.Errorf("%s: %w, or the interpreter that it names is not", name, errNotFound)
	case errors.Is(err, syscall.E2BIG):
		return fmt.Errorf("%s: its arguments and environment are longer than this system allows (128 KiB for each); keep the script in a file", name)
	default:
		return fmt.Errorf("%s: %w", name, err)
	}
}

// isMain reports whether a process that was reaped is the program that was started last. Nobody waits for the others:
// there may be thousands.
func (f *family) isMain(pid int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return pid == f.main
}

// reap waits for every child there is, forever.
func (f *family) reap() {
	for {
		starts := f.started.Load()
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // ECHILD: nothing descends from this process
			f.exits <- exit{none: true, starts: starts}
			<-f.wake
		case !f.isMain(pid):
		case status.Signaled():
			f.exits <- exit{id: pid, signal: int(status.Signal())}
		default:
			f.exits <- exit{id: pid, code: status.ExitStatus()}
		}
	}
}

// soft signals everything, and nothing that comes after: what a program starts in order to end well is not meant. So
// everything is stopped first, until a look finds nobody new; a process that is stopped starts none.
func (f *family) soft() {
	var stopped []proc
	seen := map[proc]bool{}
	for range maxStops {
		all, err := snapshot()
		if err != nil {
			break // the kill that follows does not need this
		}
		before := len(stopped)
		for _, p := range below(all, os.Getpid()) {
			if id := (proc{PID: p.PID, Start: p.Start}); !p.dead && !seen[id] {
				seen[id] = true
				stopped = append(stopped, p)
				_ = p.signal(unix.SIGSTOP) // an error means that it has gone
			}
		}
		if len(stopped) == before {
			break
		}
	}
	for _, p := range stopped {
		_ = p.signal(unix.SIGTERM, unix.SIGCONT)
	}
}

// maxStops bounds the looks for new processes before a soft signal. Whoever escapes it has the grace like everybody.
const maxStops = 20

func (f *family) kill() {
	all, err := snapshot()
	if err != nil {
		return // it is tried again
	}
	killAll(below(all, os.Getpid()))
}

var _ system = (*family)(nil)
