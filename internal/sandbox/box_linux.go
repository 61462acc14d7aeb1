package sandbox

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// Box is a sandbox. Its methods may be called from several goroutines at once and at any time.
type Box struct {
	launcher *Launcher
	id       uint64
	made     chan error // takes one value: nil when the guest runs
	done     chan struct{}
	asking   sync.Mutex
	usage    chan cgroup.Usage // takes one

	pid   int      // set before made says nil
	pidfd *os.File // likewise; read and closed by the reader of answers alone
	end   End      // read once done is closed
}

// MoveDeadline passes a later deadline on, to the launcher and to the guest.
func (b *Box) MoveDeadline(deadline forge.Instant) {
	b.launcher.tell(&Request{Move: &MoveRequest{ID: b.id, Deadline: deadline}})
}

// Kill ends all of it at once.
func (b *Box) Kill() { b.launcher.tell(&Request{Kill: b.id}) }

// Done closes when nothing of it is alive and its control group is gone.
func (b *Box) Done() <-chan struct{} { return b.done }

// End says how it ended. It may be called once Done is closed.
func (b *Box) End() End { return b.end }

// Pid is the host's id of its pid 1.
func (b *Box) Pid() int { return b.pid }

// orphaned ends a box whose launcher has ended without a word about it. The kernel kills pid 1 for that; this makes sure,
// and waits for it.
func (b *Box) orphaned() {
	if b.pidfd == nil {
		b.made <- &SetupError{Err: ErrEnded}
		return
	}
	raw, err := b.pidfd.SyscallConn()
	if err == nil {
		_ = raw.Control(func(fd uintptr) {
			_ = unix.PidfdSendSignal(int(fd), unix.SIGKILL, nil, 0) // an error means that it has gone
			for !pidfdEnded(int(fd), farewell) {
			}
		})
	}
	b.finish(End{Signal: unix.SIGKILL, Killed: true})
}

func (b *Box) finish(end End) {
	_ = b.pidfd.Close()
	b.end = end
	close(b.done)
}
