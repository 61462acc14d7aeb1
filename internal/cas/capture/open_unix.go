//go:build unix

package capture

import "golang.org/x/sys/unix"

// noWait keeps an open from waiting for the other end of a pipe.
const noWait = unix.O_NONBLOCK | unix.O_NOCTTY
