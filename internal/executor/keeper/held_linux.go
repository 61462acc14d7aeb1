package keeper

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Bounds of a look at what an attempt's processes hold open.
const (
	maxLooked = 4096  // processes
	maxHeld   = 65536 // descriptors
)

// held adds up the files that have no name any more and are held open by a process, or by one that descends from it: they
// take as much of the disk as others, and no walk meets them. What comes and goes meanwhile may count or not, and what
// this user may not look at does not.
func held(ctx context.Context, pid int, disk uint64) uint64 {
	l := look{disk: disk, seen: map[[2]uint64]bool{}}
	queue := []int{pid}
	for n := 0; n < len(queue) && n < maxLooked && len(l.seen) < maxHeld && ctx.Err() == nil; n++ {
		l.process(queue[n])
		queue = append(queue, children(queue[n])...)
	}
	return l.bytes
}

type look struct {
	disk  uint64 // the device of the attempt's folder
	seen  map[[2]uint64]bool
	bytes uint64
}

// process looks at the descriptors of one process.
func (l *look) process(pid int) {
	dir := fmt.Sprintf("/proc/%d/fd", pid)
	f, err := os.Open(dir)
	if err != nil {
		return // it has gone
	}
	defer func() { _ = f.Close() }()
	for {
		names, err := f.Readdirnames(256)
		if err != nil || len(l.seen) >= maxHeld {
			return
		}
		for _, name := range names {
			l.file(dir + "/" + name)
		}
	}
}

// file counts one file, once.
func (l *look) file(path string) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG || st.Nlink > 0 || !l.onDisk(path, st.Dev) {
		return
	}
	if id := [2]uint64{st.Dev, st.Ino}; !l.seen[id] {
		l.seen[id] = true
		l.bytes += uint64(st.Blocks) * 512
	}
}

// onDisk reports whether a file takes room of the attempt's disk: by itself, or in the upper half of a layer.
func (l *look) onDisk(path string, dev uint64) bool {
	if dev == l.disk {
		return true
	}
	var fs unix.Statfs_t
	return unix.Statfs(path, &fs) == nil && fs.Type == unix.OVERLAYFS_SUPER_MAGIC
}

// children are the processes that all threads of one have started, or have been given.
func children(pid int) []int {
	var found []int
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	for _, task := range tasks {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if err != nil {
			continue
		}
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil && len(found) < maxLooked {
				found = append(found, child)
			}
		}
	}
	return found
}
