package treecache

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"

	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/forge"
)

const platformHazards = tree.WindowsIllegal

// errQuota is what a disk says that is full for us only.
var errQuota = windows.ERROR_DISK_QUOTA_EXCEEDED

func clone(*os.File, *os.File) error { return errors.ErrUnsupported }

// bootID is not known here: what is not flushed is made anew after every restart of the agent.
func bootID() string { return "" }

func syncAll(*os.Root) error { return errors.ErrUnsupported }

// space is what a disk has left.
type space struct {
	bytes forge.Bytes
	names uint64
}

func freeSpace(path string) (space, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return space{}, err
	}
	var ours uint64
	if err := windows.GetDiskFreeSpaceEx(name, &ours, nil, nil); err != nil {
		return space{}, err
	}
	return space{bytes: forge.Bytes(ours), names: ^uint64(0)}, nil
}
