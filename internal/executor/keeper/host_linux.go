package keeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// Ends are what a keeper gets of the road to its agent. Who makes its host closes them.
type Ends struct {
	Agent          *os.File // one end of a socket pair
	Stdout, Stderr *os.File // where the steps print
}

func (e Ends) close() error { return errors.Join(e.Agent.Close(), e.Stdout.Close(), e.Stderr.Close()) }

// Host is the process in which a keeper runs, as its agent sees it. Its methods may be called from several goroutines at
// once.
type Host interface {
	// Gone closes once nothing of the attempt is alive, the host neither. It is nil where nobody knows before Wait returns.
	Gone() <-chan struct{}
	// Wait returns once that is so, and what the machine had of the host besides its processes is gone too. It is called once.
	Wait() Death
	// Kill ends the host and all of the attempt by force. It is called where the keeper does not do so in time.
	Kill()
	// MoveDeadline passes a later deadline on to whatever holds one besides the keeper.
	MoveDeadline(deadline forge.Instant)
	// Finished is told of the end of each step, before anybody else is, and says what the host knows of it.
	Finished(step forge.StepResult) Finding
	// Bounded reports whether the attempt cannot write more than its disk, so that nobody has to look. Finished says then when
	// that was all used.
	Bounded() bool
	// Pid is the host's process: every process of the attempt descends from it.
	Pid() int
	// Files opens the attempt's folder with its inputs, as they were left. It is called after Wait has returned, and before
	// Close.
	Files() (*os.Root, error)
	// Close gives back what Files needs. It is called once, after Wait has returned.
	Close() error
}

// Finding is what a host knows of the end of a step.
type Finding struct {
	Class       forge.Class // a better one than the keeper's, or 0
	Limit, Peak uint64      // with Class
	Notices     []string
}

// Death is how a host ended. It is zero where the keeper was at its end.
type Death struct {
	Signal  uint8 // that the host died of, or 0
	Bitten  bool  // something besides the keeper killed it for its deadline
	Finding Finding
}

// Job is what an agent runs in a host.
type Job struct {
	Order   *executor.Order
	Plan    *Plan
	Open    func(Ends) (Host, error) // makes the host
	Over    func()                   // called once nothing of the workload is left
	Warning string                   // stands at the head of the log; empty for none
	Log     *slog.Logger

	patience time.Duration // in place of endPatience; 0 for that
}

// pipeBytes is asked for each of the two pipes of an attempt: what the steps can print before they wait for the agent.
const pipeBytes = 1 << 20

// Prepare makes a host and tells its keeper everything but the secrets. Over is called if there was a host, and only then.
func Prepare(ctx context.Context, job Job) (executor.Workload, error) {
	job.patience = cmp.Or(job.patience, endPatience)
	w := &workload{
		job: job, dog: watchdog.New(job.Order.Policy, job.Order.Deadline), latest: forge.Never,
		ready: make(chan struct{}), started: make(chan error, 1), overdue: make(chan struct{}, 1),
		gone: make(chan struct{}), buried: make(chan struct{}), done: make(chan struct{}),
	}
	w.pump = newPump(w)
	if err := w.launch(); err != nil {
		return nil, asSetup(err)
	}
	var err error
	limit := job.Order.Spec.Resources.Disk
	if w.host.Bounded() {
		limit = 0
	}
	w.quota, err = newQuota(ctx, job.Order.Folder, w.host.Pid(), limit)
	life, over := context.WithCancel(context.Background()) // that of the host
	w.over = over
	go w.bury()
	w.helpers.Go(w.wait)
	w.helpers.Go(w.enforce)
	w.helpers.Go(func() { w.watch(life) })
	go w.pump.run()
	if err == nil {
		err = w.tell(&Request{Setup: job.Plan})
	}
	if err != nil {
		return nil, Setup(errors.Join(err, w.Close()))
	}
	select {
	case <-w.ready:
		return w, nil
	case <-w.done:
		return nil, Setup(errors.Join(errors.New("the keeper ended before it was ready"), w.Close()))
	case <-ctx.Done():
		return nil, Setup(errors.Join(context.Cause(ctx), w.Close()))
	}
}

func asSetup(err error) error {
	if setup := (*executor.SetupError)(nil); errors.As(err, &setup) {
		return setup
	}
	return Setup(err)
}

// launch makes the host and the road to it.
func (w *workload) launch() error {
	ends, err := w.open()
	if err != nil {
		w.shut()
		return err
	}
	w.host, err = w.job.Open(ends)
	if err != nil {
		w.shut()
		return errors.Join(err, ends.close())
	}
	if err := ends.close(); err != nil {
		w.job.Log.Error("an end of a pipe cannot be closed", "error", err)
	}
	return nil
}

// pipeMode lets everybody write who holds a pipe's end.
const pipeMode = 0o622

// open makes the socket pair and the pipes, and returns the keeper's ends.
func (w *workload) open() (Ends, error) {
	// Neither end waits in a call: the keeper's would hold up what else there is to do in its process.
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return Ends{}, fmt.Errorf("socket pair: %w", err)
	}
	files := []*os.File{os.NewFile(uintptr(pair[1]), "agent")}
	w.conn = os.NewFile(uintptr(pair[0]), "keeper")
	w.fds[0] = pair[0]
	for i, name := range []string{"stdout", "stderr"} {
		var pipe [2]int
		if perr := unix.Pipe2(pipe[:], unix.O_CLOEXEC); perr != nil {
			err = errors.Join(err, fmt.Errorf("pipe: %w", perr))
			break
		}
		_, _ = unix.FcntlInt(uintptr(pipe[1]), unix.F_SETPIPE_SZ, pipeBytes) // a smaller pipe works too
		// Steps of another id open it by /dev/stdout. Who has no descriptor of it has no way to it.
		err = errors.Join(err, unix.Fchmod(pipe[1], pipeMode))
		w.fds[1+i] = pipe[0]
		w.reads = append(w.reads, os.NewFile(uintptr(pipe[0]), name))
		files = append(files, os.NewFile(uintptr(pipe[1]), name))
		err = errors.Join(err, unix.SetNonblock(pipe[0], true))
	}
	if err == nil {
		w.inlet, err = newInlet(w.fds[:])
	}
	if err != nil {
		for _, file := range files {
			err = errors.Join(err, file.Close())
		}
		return Ends{}, err
	}
	return Ends{Agent: files[0], Stdout: files[1], Stderr: files[2]}, nil
}

// shut closes what open opened. Nothing is written to these, so there is nothing that could fail.
func (w *workload) shut() {
	if w.conn == nil {
		return
	}
	if w.inlet != nil {
		w.inlet.close()
	}
	_ = w.conn.Close()
	for _, r := range w.reads {
		_ = r.Close()
	}
}
