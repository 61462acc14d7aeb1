//go:build !linux

package program

// Guard does nothing on this system.
func Guard() error { return nil }

// Unguarded runs start.
func Unguarded(start func() error) error { return start() }
