//go:build !linux

package keeper

import "errors"

// inMemory refuses secrets that are files: no folder of this system is known to be in memory.
func inMemory(string) error {
	return errors.New("this system has no folder in memory for it; use a variable")
}
