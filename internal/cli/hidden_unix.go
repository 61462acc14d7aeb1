//go:build linux || darwin

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// lookMillis is how often a wait for a line looks whether it is still wanted.
const lookMillis = 100

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), ioctlGet)
	return err == nil
}

// askHidden asks for one line on a terminal without showing it. Whatever happens, what is typed behind it is shown again. The
// caller wipes the answer. A terminal gives no line longer than some thousand bytes.
func askHidden(ctx context.Context, terminal *os.File, out io.Writer, prompt string) (line []byte, err error) {
	fd := int(terminal.Fd())
	before, err := unix.IoctlGetTermios(fd, ioctlGet)
	if err != nil {
		return nil, fmt.Errorf("ask for the value: %w", err)
	}
	hidden := *before
	hidden.Lflag &^= unix.ECHO
	hidden.Lflag |= unix.ICANON | unix.ISIG
	hidden.Iflag |= unix.ICRNL
	if err := unix.IoctlSetTermios(fd, ioctlSet, &hidden); err != nil {
		return nil, fmt.Errorf("hide the value: %w", err)
	}
	defer func() {
		err = errors.Join(err, unix.IoctlSetTermios(fd, ioctlSet, before))
		_, _ = fmt.Fprintln(out)
	}()
	_, _ = fmt.Fprint(out, prompt)
	buffer := make([]byte, forge.MaxSecret+3)
	n := 0
	for n < len(buffer) && bytes.IndexByte(buffer[:n], '\n') < 0 {
		if err := await(ctx, fd); err != nil {
			return buffer, err
		}
		got, err := unix.Read(fd, buffer[n:])
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil:
			return buffer, fmt.Errorf("read the value: %w", err)
		case got == 0:
			return buffer[:n], nil
		}
		n += got
	}
	return buffer[:n], nil
}

// await waits until a terminal has a line, or ctx ends.
func await(ctx context.Context, fd int) error {
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		polled := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		n, err := unix.Poll(polled, lookMillis)
		switch {
		case err != nil && !errors.Is(err, unix.EINTR):
			return fmt.Errorf("wait for the value: %w", err)
		case n > 0:
			return nil
		}
	}
}
