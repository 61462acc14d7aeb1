package launch

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// alarm rings at an instant of the clock of deadlines, which runs while the machine sleeps.
type alarm struct {
	file  *os.File
	rings chan struct{}
}

func newAlarm() (*alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("timer: %w", err)
	}
	a := &alarm{file: os.NewFile(uintptr(fd), "timer"), rings: make(chan struct{}, 1)}
	go a.watch()
	return a, nil
}

// watch turns what the timer says into rings. It ends with the process.
func (a *alarm) watch() {
	var count [8]byte
	for {
		if _, err := a.file.Read(count[:]); err != nil {
			return
		}
		select {
		case a.rings <- struct{}{}:
		default:
		}
	}
}

// set makes the alarm ring at an instant, at once if that has passed, or never.
func (a *alarm) set(at forge.Instant) {
	var when unix.ItimerSpec // zero stops the timer
	if at != forge.Never {
		when.Value = unix.NsecToTimespec(max(1, int64(at)))
	}
	raw, err := a.file.SyscallConn()
	if err != nil {
		return // the file is never closed
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &when, nil) // it is a timer, and the time is one
	})
}
