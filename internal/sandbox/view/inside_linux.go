package view

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Own returns this process's mount namespace. The launcher puts that of the host, or its own, into Options.HostNS.
func Own() (Namespace, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/mnt", &st); err != nil {
		return Namespace{}, fmt.Errorf("view: look at this process's mount namespace: %w", err)
	}
	return Namespace{Dev: st.Dev, Ino: st.Ino}, nil
}

// inside refuses wherever Build would take apart a root that is not a sandbox's.
func inside(host Namespace) error {
	if pid := os.Getpid(); pid != 1 {
		return fmt.Errorf("%w: this is process %d, not 1 of a new pid namespace", ErrNotInside, pid)
	}
	if host == (Namespace{}) {
		return fmt.Errorf("%w: the plan does not name the host's mount namespace", ErrNotInside)
	}
	own, err := Own()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNotInside, err)
	}
	if own == host {
		return fmt.Errorf("%w: this is the host's mount namespace", ErrNotInside)
	}
	return nil
}
