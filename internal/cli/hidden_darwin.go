package cli

import "golang.org/x/sys/unix"

// How macOS is asked about a terminal.
const (
	ioctlGet = unix.TIOCGETA
	ioctlSet = unix.TIOCSETA
)
