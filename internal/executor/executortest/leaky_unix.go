//go:build unix

package executortest

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// leaky makes a descriptor that children inherit.
func leaky(t *testing.T, file *os.File) {
	t.Helper()
	fd, err := unix.Dup(int(file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
}
