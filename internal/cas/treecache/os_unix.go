//go:build unix && !linux

package treecache

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
)

const platformHazards = hazards(0)

// errQuota is what a disk says that is full for us only.
var errQuota = unix.EDQUOT

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
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return space{}, err
	}
	return space{bytes: forge.Bytes(uint64(s.Bavail) * uint64(s.Bsize)), names: ^uint64(0)}, nil
}
