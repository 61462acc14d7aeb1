package process

import (
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/executor/keeper"
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
	return keeper.Keep(os.NewFile(fdAgent, "agent"), func(*keeper.Plan) (keeper.System, <-chan keeper.Exit, error) {
		// The agent has looked at this process by now, which it may not do any more from here on, where /proc hides what is not
		// one's own. What is secret comes later.
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
			return nil, nil, fmt.Errorf("become undumpable: %w", err)
		}
		f := family{keeper.NewChildren()}
		return f, f.Exits(), nil
	}, nil)
}

// becomeSupervisor sets up what the steps inherit, and what keeps them in.
func becomeSupervisor() error {
	if err := unix.SetNonblock(fdAgent, true); err != nil {
		return fmt.Errorf("descriptor %d: %w", fdAgent, err)
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become a subreaper: %w", err)
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

// family is everything that descends from this process.
type family struct{ *keeper.Children }

// Start runs a program in a session of its own, without a terminal, with nothing to read.
func (f family) Start(argv []string, dir string, env []string) (int, error) {
	path, err := keeper.LookPath(argv[0], dir, env)
	if err != nil {
		return 0, err
	}
	return f.Fork(argv, path, &syscall.ProcAttr{
		Dir: dir, Env: env, Files: []uintptr{fdNull, fdStdout, fdStderr},
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
}

// Remarks has none.
func (f family) Remarks() []string { return nil }

// AsStep has nothing to change: the steps have this process's rights.
func (f family) AsStep(act func()) { act() }

// Soft signals everything, and nothing that comes after: what a program starts in order to end well is not meant. So
// everything is stopped first, until a look finds nobody new; a process that is stopped starts none.
func (f family) Soft() {
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

// Kill kills everything that one look finds.
func (f family) Kill() {
	all, err := snapshot()
	if err != nil {
		return // it is tried again
	}
	killAll(below(all, os.Getpid()))
}

var _ keeper.System = family{}
