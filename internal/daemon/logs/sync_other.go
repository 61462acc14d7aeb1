//go:build !linux

package logs

import "os"

// syncData waits until what was written to a file survives the end of this machine.
func syncData(f *os.File) error { return f.Sync() }
