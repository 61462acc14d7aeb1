package sandbox

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// deaths sees pid 1 of each box end, which is after the end of every process of the box. The launcher sees it too, and takes
// the box apart then; whoever waits for nothing but the end need not wait for that.
type deaths struct {
	file *os.File // an epoll of the descriptors of pid 1
	raw  syscall.RawConn
}

func watchDeaths() (*deaths, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("watch the ends of sandboxes: %w", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil { // so that the runtime waits for it
		return nil, errors.Join(fmt.Errorf("watch the ends of sandboxes: %w", err), unix.Close(fd))
	}
	d := &deaths{file: os.NewFile(uintptr(fd), "ends of sandboxes")}
	d.raw, err = d.file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, d.file.Close())
	}
	return d, nil
}

// add watches one process for the box with an id, until its end or drop.
func (d *deaths) add(pidfd *os.File, id uint64) error {
	return d.control(unix.EPOLL_CTL_ADD, pidfd, &unix.EpollEvent{
		Events: unix.EPOLLIN | unix.EPOLLONESHOT, Fd: int32(uint32(id)), Pad: int32(uint32(id >> 32)),
	})
}

// drop watches a process no longer. It comes before its descriptor is closed: the launcher has the same file open, so that
// closing this end takes nothing off the list.
func (d *deaths) drop(pidfd *os.File) { _ = d.control(unix.EPOLL_CTL_DEL, pidfd, nil) } // fails if it was not on it

func (d *deaths) control(op int, pidfd *os.File, event *unix.EpollEvent) error {
	process, err := pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var cerr error
	err = d.raw.Control(func(list uintptr) {
		err := process.Control(func(fd uintptr) { cerr = unix.EpollCtl(int(list), op, int(fd), event) })
		cerr = errors.Join(cerr, err)
	})
	return errors.Join(err, cerr)
}

// next waits for an end, and returns the id of its box. The error says that this was closed.
func (d *deaths) next() (uint64, error) {
	var events [1]unix.EpollEvent
	err := d.raw.Read(func(fd uintptr) bool {
		n, _ := unix.EpollWait(int(fd), events[:], 0) // an error is an interruption
		return n > 0
	})
	return uint64(uint32(events[0].Fd)) | uint64(uint32(events[0].Pad))<<32, err
}

// close ends next.
func (d *deaths) close() error { return d.file.Close() }
