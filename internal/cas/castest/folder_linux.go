package castest

import "golang.org/x/sys/unix"

// leastMemory is the room in memory from which on folders of tests are there: a sandbox has some, but little.
const leastMemory = 1 << 30

var memory = func() string {
	const place = "/dev/shm"
	var s unix.Statfs_t
	if unix.Statfs(place, &s) != nil || s.Bavail*uint64(s.Bsize) < leastMemory { //nolint:gosec // a size
		return ""
	}
	return place
}()
