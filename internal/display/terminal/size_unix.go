//go:build unix

package terminal

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// Size returns how many columns and rows a terminal has; ok is false where f is none, or does not know.
func Size(f *os.File) (width, height int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil || size.Col == 0 || size.Row == 0 {
		return 0, 0, false
	}
	return int(size.Col), int(size.Row), true
}

// Prepare makes a terminal understand what is sent to it. Here it does already.
func Prepare(*os.File) bool { return true }

// Signals tells when the terminal has another size, and when this process goes on after it was stopped, until stop is called.
func Signals() (resized, resumed <-chan struct{}, stop func()) {
	size, stopSize := told(unix.SIGWINCH)
	resume, stopResume := told(unix.SIGCONT)
	return size, resume, func() { stopSize(); stopResume() }
}

// told passes a signal on, once for any number that came meanwhile. It owns a goroutine, which has ended when stop returns.
func told(s os.Signal) (<-chan struct{}, func()) {
	in, out, end, ended := make(chan os.Signal, 1), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(in, s)
	go func() {
		defer close(ended)
		for {
			select {
			case <-in:
				select {
				case out <- struct{}{}:
				default:
				}
			case <-end:
				return
			}
		}
	}()
	return out, func() {
		signal.Stop(in)
		close(end)
		<-ended
	}
}
