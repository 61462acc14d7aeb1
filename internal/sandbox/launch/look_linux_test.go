package launch_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// patience bounds what must come but may take its time on a machine with other work.
const patience = 30 * time.Second

// eventually waits until something holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it never came to pass that " + what)
		}
	}
}

// launcherOf reads the process id of the launcher on a state folder, or 0.
func launcherOf(state string) int {
	text, err := os.ReadFile(filepath.Join(state, sandbox.LockFile))
	var r sandbox.Record
	if err != nil || json.Unmarshal(text, &r) != nil {
		return 0
	}
	return r.PID
}

// alive reports whether a process is there and no zombie. One whose other threads are still ending looks like one.
func alive(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	state := text[bytes.LastIndexByte(text, ')')+2]
	threads, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/task")
	return state != 'Z' && state != 'X' || err == nil && len(threads) > 1
}

func parentOf(pid int) int {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	parent, err := strconv.Atoi(strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))[1])
	if err != nil {
		return 0
	}
	return parent
}

func allPids(t *testing.T) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// firstsOf returns the living children of a launcher that are pid 1 of a sandbox.
func firstsOf(t *testing.T, launcher int) []int {
	t.Helper()
	var firsts []int
	for _, pid := range allPids(t) {
		cmdline, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if err == nil && bytes.Contains(cmdline, []byte("be-first-in-sandbox")) && parentOf(pid) == launcher && alive(pid) {
			firsts = append(firsts, pid)
		}
	}
	return firsts
}

// namespaceOf names a namespace of a process, or is empty.
func namespaceOf(pid int, kind string) string {
	name, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/ns/" + kind)
	if err != nil {
		return ""
	}
	return name
}

// within returns every process whose pid namespace is that of one of the firsts.
func within(t *testing.T, firsts ...int) []int {
	t.Helper()
	spaces := map[string]bool{}
	for _, pid := range firsts {
		spaces[namespaceOf(pid, "pid")] = true
	}
	delete(spaces, "")
	var found []int
	for _, pid := range allPids(t) {
		if spaces[namespaceOf(pid, "pid")] && alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// sharing returns the living processes that are in pid namespaces, by name.
func sharing(t *testing.T, spaces map[string]bool) []int {
	t.Helper()
	var found []int
	for _, pid := range allPids(t) {
		if spaces[namespaceOf(pid, "pid")] && alive(pid) {
			found = append(found, pid)
		}
	}
	return found
}

// signal signals a process that a test has started.
func signal(t *testing.T, pid int, s unix.Signal) {
	t.Helper()
	if pid <= 1 {
		t.Fatalf("process %d is none of ours", pid)
	}
	if err := unix.Kill(pid, s); err != nil && !errors.Is(err, unix.ESRCH) {
		t.Fatal(err)
	}
}
