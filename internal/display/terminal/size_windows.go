package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// Size returns how many columns and rows a terminal has; ok is false where f is none.
func Size(f *os.File) (width, height int, ok bool) {
	var info windows.ConsoleScreenBufferInfo
	if err := windows.GetConsoleScreenBufferInfo(windows.Handle(f.Fd()), &info); err != nil {
		return 0, 0, false
	}
	return int(info.Window.Right-info.Window.Left) + 1, int(info.Window.Bottom-info.Window.Top) + 1, true
}

// Prepare makes a terminal understand what is sent to it, and reports whether it does.
func Prepare(f *os.File) bool {
	var mode uint32
	if err := windows.GetConsoleMode(windows.Handle(f.Fd()), &mode); err != nil {
		return false
	}
	return windows.SetConsoleMode(windows.Handle(f.Fd()), mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) == nil
}

// Signals tells nothing here: the size is asked for whenever something is drawn.
func Signals() (resized, resumed <-chan struct{}, stop func()) { return nil, nil, func() {} }
