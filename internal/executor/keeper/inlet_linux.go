package keeper

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// inlet waits for a few descriptors at once, with the runtime's help: a thread that waited in a call of the system would make
// the runtime look after it all the while, fifty thousand times a second, on the processors that the steps need. One goroutine
// uses it.
type inlet struct {
	file   *os.File // an epoll
	raw    syscall.RawConn
	events [maxInlet]unix.EpollEvent
	ready  []int
}

// maxInlet is how many there are at most.
const maxInlet = 3

// newInlet watches descriptors, which it does not own. The caller closes it.
func newInlet(fds []int) (*inlet, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch descriptors: %w", err)
	}
	err = unix.SetNonblock(fd, true)
	for i, watched := range fds {
		err = errors.Join(err, unix.EpollCtl(fd, unix.EPOLL_CTL_ADD, watched, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)})) //nolint:gosec // there are few
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch descriptors: %w", err), unix.Close(fd))
	}
	in := &inlet{file: os.NewFile(uintptr(fd), "inlet")}
	if in.raw, err = in.file.SyscallConn(); err != nil {
		return nil, errors.Join(err, in.file.Close())
	}
	return in, nil
}

// wait waits until some have something to read or are at their end, and returns their places, until the next call.
func (in *inlet) wait() []int {
	in.ready = in.ready[:0]
	_ = in.raw.Read(func(fd uintptr) bool { // it fails once it is closed, which is after the last call
		n, _ := unix.EpollWait(int(fd), in.events[:], 0) // an error is an interruption
		for _, e := range in.events[:max(0, n)] {
			in.ready = append(in.ready, int(e.Fd))
		}
		return n > 0
	})
	return in.ready
}

// drop watches one no longer.
func (in *inlet) drop(fd int) {
	_ = in.raw.Control(func(list uintptr) { _ = unix.EpollCtl(int(list), unix.EPOLL_CTL_DEL, fd, nil) }) // it is on the list
}

func (in *inlet) close() { _ = in.file.Close() } // nothing was written
