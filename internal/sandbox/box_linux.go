package sandbox

import (
	"errors"
	"fmt"
	"os"
	"strconv"
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
	dead     chan struct{}
	done     chan struct{}
	dying    sync.Once
	asking   sync.Mutex
	usage    chan cgroup.Usage // takes one

	folder string   // set before it is asked for
	pid    int      // set before made says nil
	pidfd  *os.File // likewise; read and closed by the reader of answers alone
	tree   *os.File // likewise; the folder with its layers and on its disk, nil without both
	disk   *Disk    // likewise; nil where the folder is on the machine's
	limit  forge.Bytes
	end    End // read once done is closed

	closing sync.Once
	closed  error
}

// MoveDeadline passes a later deadline on, to the launcher and to the guest.
func (b *Box) MoveDeadline(deadline forge.Instant) {
	b.launcher.tell(&Request{Move: &MoveRequest{ID: b.id, Deadline: deadline}})
}

// Kill ends all of it at once.
func (b *Box) Kill() { b.launcher.tell(&Request{Kill: b.id}) }

// Dead closes when nothing of it is alive. The launcher may not have taken it apart yet, and what it used is not known.
func (b *Box) Dead() <-chan struct{} { return b.dead }

// Done closes after Dead, when its control group is gone too.
func (b *Box) Done() <-chan struct{} { return b.done }

// End says how it ended. It may be called once Done is closed.
func (b *Box) End() End { return b.end }

// Pid is the host's id of its pid 1.
func (b *Box) Pid() int { return b.pid }

// Files opens the attempt's folder as the sandbox sees it, or has left it, to be read: with its layers, which are there as
// long as the box is not closed, with or without a launcher. The caller closes the root before it closes the box.
func (b *Box) Files() (*os.Root, error) {
	if b.tree == nil {
		return os.OpenRoot(b.folder)
	}
	if b.disk != nil {
		if err := b.disk.Lost(); err != nil {
			return nil, err
		}
	}
	raw, err := b.tree.SyscallConn()
	if err != nil {
		return nil, fmt.Errorf("the folder of a sandbox with its layers: %w", err)
	}
	var root *os.Root
	var rerr error
	err = raw.Control(func(fd uintptr) { root, rerr = os.OpenRoot("/proc/self/fd/" + strconv.Itoa(int(fd))) })
	if err := errors.Join(err, rerr); err != nil {
		return nil, fmt.Errorf("the folder of a sandbox with its layers: %w", err)
	}
	return root, nil
}

// Close gives back what the box holds of the attempt's folder. It is called once Done is closed, and may be called again.
func (b *Box) Close() error {
	b.closing.Do(func() {
		if b.tree != nil {
			b.closed = b.tree.Close()
		}
		if b.disk != nil {
			b.launcher.beside(b.disk.close) // it takes longer than an attempt's end may
		}
	})
	return b.closed
}

// take takes what the launcher says of a sandbox that runs, with its files, unless they do not fit.
func (b *Box) take(m *Made, files []*os.File) bool {
	want := 1
	if m.Tree {
		want++
	}
	if m.Disk != "" {
		want++
	}
	if len(files) != want {
		return false
	}
	b.pid, b.pidfd = m.Pid, files[0]
	if m.Tree {
		b.tree = files[1]
	}
	if m.Disk != "" {
		b.disk = &Disk{root: files[want-1], device: m.Disk, Limit: b.limit}
	}
	return true
}

// Disk is what the sandbox writes its folder on, or nil where that is no other than the machine's and without a limit.
func (b *Box) Disk() *Disk { return b.disk }

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
	b.launcher.deaths.drop(b.pidfd)
	_ = b.pidfd.Close()
	b.end = end
	b.die()
	close(b.done)
}

// die notes that nothing of it is alive.
func (b *Box) die() { b.dying.Do(func() { close(b.dead) }) }

func (b *Box) isDead() bool {
	select {
	case <-b.dead:
		return true
	default:
		return false
	}
}
