package emulator

import (
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Pair opens a new terminal of the kernel: what a person sees and types into, and what a program has. The caller closes both.
func Pair(width, height int) (person, program *os.File, err error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("a new terminal: %w", err)
	}
	person = os.NewFile(uintptr(fd), "person")
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err := errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0), SetSize(person, width, height)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("a new terminal: %w", err), person.Close())
	}
	program, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, errors.Join(err, person.Close())
	}
	return person, program, nil
}

// SetSize gives a terminal a size, of which the programs in it are told.
func SetSize(person *os.File, width, height int) error {
	conn, err := person.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(width), Row: uint16(height)}) //nolint:gosec // sizes of tests and pictures
	})
	return errors.Join(err, failed)
}
