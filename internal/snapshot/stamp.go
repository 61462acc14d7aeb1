package snapshot

import "time"

// coarsest is the step of the coarsest clock by which a file system dates changes (FAT: two seconds).
const coarsest = 2 * time.Second

// A stamp is what tells one content of a path from the next without reading it. The zero stamp is that of nothing.
type stamp struct {
	size  int64
	mtime int64 // nanoseconds since 1970
	ctime int64 // likewise; zero where the platform has none
	inode uint64
	mode  uint32 // type and permissions as Unix numbers them
}

// Types of files in a stamp's mode, and the bit that makes a file executable for git.
const (
	typeMask   = 0o170000
	typeFile   = 0o100000
	typeFolder = 0o040000
	typeLink   = 0o120000
	ownerExec  = 0o000100
)

func (s stamp) is(kind uint32) bool { return s.mode&typeMask == kind }

// changed is when the file system says that something happened to it last.
func (s stamp) changed() int64 {
	if s.ctime != 0 { // which nobody can set
		return s.ctime
	}
	return s.mtime
}

// racy reports whether something could have happened after a look at that time without another stamp.
func (s stamp) racy(at int64) bool { return s.changed() > at-int64(coarsest) }
