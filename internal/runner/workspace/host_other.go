//go:build !linux

package workspace

import "os"

// unlock does nothing here: attributes of that kind are known on Linux only.
func unlock(*os.Root, string) {}
