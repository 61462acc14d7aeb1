package disk

import (
	"errors"
	"io/fs"
	"syscall"
)

// unusable are the errors of a file system that lets this process not write where it wants to.
var unusable = []error{fs.ErrPermission, ErrOwner, syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.ENOTDIR, syscall.EIO}

// Unusable reports whether an error comes of a place where this process cannot write: it may not, there is no room, or it is no
// folder. Another place would do.
func Unusable(err error) bool {
	for _, kind := range unusable {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}
