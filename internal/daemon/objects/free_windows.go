package objects

import (
	"golang.org/x/sys/windows"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// free is how many bytes the volume of a folder has left for this process.
func free(dir string) (forge.Bytes, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	var left uint64
	if err := windows.GetDiskFreeSpaceEx(name, &left, nil, nil); err != nil {
		return 0, err
	}
	return forge.Bytes(left), nil
}
