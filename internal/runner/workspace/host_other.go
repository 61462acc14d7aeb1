//go:build !linux

package workspace

import (
	"errors"
	"os"
)

// unlock does nothing here: attributes of that kind are known on Linux only.
func unlock(*os.Root, string) bool { return false }

// busy says no here, as mounted does.
func busy(error) bool { return false }

// mounted says no here: how to find out is known on Linux only.
func mounted(_, _ *folder) bool { return false }

func unmount(*folder, string) error { return errors.ErrUnsupported }
