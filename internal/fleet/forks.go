//go:build linux

package fleet

import (
	"os/exec"
	"runtime"
)

// forks starts processes that are killed when this one ends, however it does: a story that runs into its time limit, or is
// killed itself, leaves no daemon and no agent behind. The kernel kills them with the thread that has made them, not with the
// process, so that all of them are made by one thread, which lives as long as the fleet.
type forks struct {
	wanted chan fork
	ended  chan struct{}
}

type fork struct {
	cmd  *exec.Cmd
	done chan error
}

func newForks() *forks {
	f := &forks{wanted: make(chan fork), ended: make(chan struct{})}
	go f.run()
	return f
}

// run ends with close. It does not unlock its thread, which ends with it.
func (f *forks) run() {
	defer close(f.ended)
	runtime.LockOSThread()
	for w := range f.wanted {
		w.done <- w.cmd.Start()
	}
}

// start starts a command. Its attributes name the signal that it gets at the end of the thread.
func (f *forks) start(cmd *exec.Cmd) error {
	w := fork{cmd: cmd, done: make(chan error, 1)}
	f.wanted <- w
	return <-w.done
}

// close kills what was started and lives. Nobody starts anything any more.
func (f *forks) close() {
	close(f.wanted)
	<-f.ended
}
