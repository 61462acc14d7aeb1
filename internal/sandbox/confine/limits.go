//go:build linux

package confine

import (
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// limits are the same for every attempt, whatever the machine's own are. Those of memory and time are the control group's and
// the deadline's.
type limits struct {
	what       int
	name       string
	soft, hard uint64
}

const unlimited = unix.RLIM_INFINITY

var fixed = []limits{
	{unix.RLIMIT_CORE, "core", 0, 0},
	{unix.RLIMIT_NOFILE, "nofile", 1024, 524_288},
	{unix.RLIMIT_STACK, "stack", 8 << 20, unlimited},
	{unix.RLIMIT_MEMLOCK, "memlock", 8 << 20, 8 << 20},
	{unix.RLIMIT_MSGQUEUE, "msgqueue", 819_200, 819_200},
	{unix.RLIMIT_SIGPENDING, "sigpending", 16_384, 16_384},
	{unix.RLIMIT_NICE, "nice", 0, 0},
	{unix.RLIMIT_RTPRIO, "rtprio", 0, 0},
	{unix.RLIMIT_FSIZE, "fsize", unlimited, unlimited},
	{unix.RLIMIT_DATA, "data", unlimited, unlimited},
	{unix.RLIMIT_AS, "as", unlimited, unlimited},
	{unix.RLIMIT_CPU, "cpu", unlimited, unlimited},
	{unix.RLIMIT_LOCKS, "locks", unlimited, unlimited},
}

// limit sets the fixed limits, as far as the hard ones that this process came with allow.
func limit() error {
	for _, l := range fixed {
		if err := l.set(); err != nil {
			return err
		}
	}
	return nil
}

// limitProcesses bounds the processes of one id.
func limitProcesses(most uint64) error {
	if most == 0 {
		return nil
	}
	return limits{unix.RLIMIT_NPROC, "nproc", most, most}.set()
}

func (l limits) set() error {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(l.what, &now); err != nil {
		return fmt.Errorf("read the limit %s: %w", l.name, err)
	}
	hard := min(l.hard, now.Max)
	// By package syscall: the Go runtime raises nofile for itself, and gives children the old one unless told so here.
	if err := syscall.Setrlimit(l.what, &syscall.Rlimit{Cur: min(l.soft, hard), Max: hard}); err != nil {
		return fmt.Errorf("set the limit %s: %w", l.name, err)
	}
	return nil
}
