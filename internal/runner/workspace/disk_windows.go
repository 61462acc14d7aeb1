package workspace

import (
	"golang.org/x/sys/windows"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func diskSpace(path string) (free, total forge.Bytes, err error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	var ours, all uint64
	if err := windows.GetDiskFreeSpaceEx(name, &ours, &all, nil); err != nil {
		return 0, 0, err
	}
	return forge.Bytes(ours), forge.Bytes(all), nil
}
