package logs

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData waits until what was written to a file survives the end of this machine. Its times need not.
func syncData(f *os.File) error {
	for {
		if err := unix.Fdatasync(int(f.Fd())); err != unix.EINTR {
			return err
		}
	}
}
