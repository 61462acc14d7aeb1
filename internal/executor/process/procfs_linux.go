package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// proc is a process as /proc shows it. The id and the start time together name it: the kernel uses ids again.
type proc struct {
	PID     int
	Start   uint64 // in clock ticks since the boot
	parent  int
	group   int
	session int
	dead    bool // a zombie, without a thread that goes on
}

// snapshot lists the processes of this machine. It is no atomic view: whoever kills by it looks again.
func snapshot() ([]proc, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	names, err := dir.Readdirnames(-1)
	if err := errors.Join(err, dir.Close()); err != nil {
		return nil, err
	}
	all := make([]proc, 0, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProc(pid); err == nil { // else it has gone meanwhile
			all = append(all, p)
		}
	}
	return all, nil
}

// readProc reads one process.
func readProc(pid int) (proc, error) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return proc{}, err
	}
	// The name in the second field may hold anything; the last parenthesis ends it.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 20 {
		return proc{}, fmt.Errorf("process %d: its status has %d fields", pid, len(fields))
	}
	p := proc{PID: pid}
	var errs [5]error
	p.parent, errs[0] = strconv.Atoi(fields[1])
	p.group, errs[1] = strconv.Atoi(fields[2])
	p.session, errs[2] = strconv.Atoi(fields[3])
	p.Start, errs[3] = strconv.ParseUint(fields[19], 10, 64)
	var threads int
	threads, errs[4] = strconv.Atoi(fields[17])
	p.dead = fields[0] == "X" || fields[0] == "Z" && threads <= 1 // the first thread may end long before the others
	return p, errors.Join(errs[:]...)
}

// alive reports whether the process is still there, and a thread of it goes on.
func (p proc) alive() bool {
	now, err := readProc(p.PID)
	return err == nil && now.Start == p.Start && !now.dead
}

// hold returns a descriptor of the process that p named when it was read. No later process can take its place. The caller
// closes it.
func (p proc) hold() (int, error) {
	fd, err := unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return -1, err
	}
	if !p.alive() {
		_ = unix.Close(fd)
		return -1, unix.ESRCH
	}
	return fd, nil
}

// signal sends signals to the process, if it still is the one.
func (p proc) signal(signals ...unix.Signal) error {
	fd, err := p.hold()
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	for _, s := range signals {
		if err := unix.PidfdSendSignal(fd, s, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

// killGroup kills the process with its whole group, which a fork cannot outrun. The process is stopped first, so that it
// stays in the group, and the group's id cannot become another's, until the signal is out.
func (p proc) killGroup() {
	fd, err := p.hold()
	if err != nil {
		return // it has gone
	}
	defer func() { _ = unix.Close(fd) }()
	_ = unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0)
	if now, err := readProc(p.PID); err == nil && now.Start == p.Start && now.group == p.group && !now.dead && p.group > 1 {
		_ = unix.Kill(-p.group, unix.SIGKILL)
	}
	_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// below returns the processes that descend from one of roots, the roots not among them, unless they descend from another.
func below(all []proc, roots ...int) []proc {
	children := map[int][]proc{}
	for _, p := range all {
		children[p.parent] = append(children[p.parent], p)
	}
	var found []proc
	seen := map[int]bool{}
	for queue := roots; len(queue) > 0; queue = queue[1:] {
		for _, child := range children[queue[0]] {
			if !seen[child.PID] {
				seen[child.PID] = true
				found = append(found, child)
				queue = append(queue, child.PID)
			}
		}
	}
	return found
}

// killAll kills processes, each group once, and returns how many of them lived. It never touches its own group.
func killAll(victims []proc) int {
	own := unix.Getpgrp()
	groups := map[int]bool{own: true}
	lived := 0
	for _, p := range victims {
		switch {
		case p.dead || p.PID == os.Getpid():
			continue
		case !groups[p.group]:
			groups[p.group] = true
			p.killGroup()
		default:
			_ = p.signal(unix.SIGKILL) // an error means that it has gone
		}
		lived++
	}
	return lived
}

// anyThread is the folder of a thread that goes on, where one does. What a process has, such as files and an environment, is
// not shown for a thread that has ended.
func (p proc) anyThread() string {
	dir := "/proc/" + strconv.Itoa(p.PID)
	if threads, err := os.ReadDir(dir + "/task"); err == nil && len(threads) > 1 {
		return dir + "/task/" + threads[len(threads)-1].Name()
	}
	return dir
}

// hasMark reports whether a process was started with a value of envMark that begins with mark.
func (p proc) hasMark(mark string) (attempt string, ok bool) {
	text, err := os.ReadFile(p.anyThread() + "/environ")
	if err != nil {
		return "", false // gone, or another user's
	}
	for entry := range bytes.SplitSeq(text, []byte{0}) {
		if value, ok := bytes.CutPrefix(entry, []byte(envMark+"="+mark)); ok {
			return string(value), true
		}
	}
	return "", false
}

// holdsAny reports whether a process has one of the given pipes open, named as in /proc/<pid>/fd.
func (p proc) holdsAny(pipes map[string]bool) bool {
	dir := p.anyThread() + "/fd"
	entries, err := os.ReadDir(dir)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && pipes[target] {
			return true
		}
	}
	return false
}
