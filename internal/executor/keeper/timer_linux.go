package keeper

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// timer is an alarm on the clock of deadlines, which runs while the machine sleeps.
type timer struct {
	file *os.File
	c    chan struct{}
}

func newTimer() (*timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	t := &timer{file: os.NewFile(uintptr(fd), "timer"), c: make(chan struct{}, 1)}
	go t.watch()
	return t, nil
}

// watch turns what the timer says into rings. It ends with the process.
func (t *timer) watch() {
	var count [8]byte
	for {
		if _, err := t.file.Read(count[:]); err != nil {
			return
		}
		select {
		case t.c <- struct{}{}:
		default:
		}
	}
}

func (t *timer) Ring() <-chan struct{} { return t.c }

func (t *timer) Set(at forge.Instant) {
	var when unix.ItimerSpec // zero stops the timer
	if at != forge.Never {
		when.Value = unix.NsecToTimespec(max(1, int64(at)))
	}
	raw, err := t.file.SyscallConn()
	if err != nil {
		return // the file is never closed
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &when, nil) // it is a timer, and the time is one
	})
}

var _ Alarm = (*timer)(nil)
