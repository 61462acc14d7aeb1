package cli

import "golang.org/x/sys/unix"

// How Linux is asked about a terminal.
const (
	ioctlGet = unix.TCGETS
	ioctlSet = unix.TCSETS
)
