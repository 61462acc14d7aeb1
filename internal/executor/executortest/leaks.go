package executortest

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// holdings are what this process holds of its machine.
type holdings struct {
	files    int // descriptors
	children int
}

// within is how long what is on its way out may take: a thread of the runtime, a descriptor of a dead process.
const within = 10 * time.Second

// resources counts what this process holds. Where there is no /proc it counts nothing.
func resources(t *testing.T) holdings {
	t.Helper()
	var h holdings
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return h
	}
	h.files = len(entries)
	for _, stat := range stats(t) {
		if stat.parent == os.Getpid() {
			h.children++
		}
	}
	return h
}

type stat struct {
	pid, parent int
	state       string
}

// stats reads the processes of this machine.
func stats(t *testing.T) []stat {
	t.Helper()
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	var all []stat
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has gone
		}
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, _ := strconv.Atoi(fields[1])
		all = append(all, stat{pid: pid, parent: parent, state: fields[0]})
	}
	return all
}

// living returns the processes that have text in their environment or arguments, except this one and zombies.
func living(t *testing.T, text string) []int {
	t.Helper()
	var found []int
	for _, s := range stats(t) {
		dir := "/proc/" + strconv.Itoa(s.pid)
		env, _ := os.ReadFile(dir + "/environ") // unreadable is not ours
		args, _ := os.ReadFile(dir + "/cmdline")
		if s.pid != os.Getpid() && s.state != "Z" && (bytes.Contains(env, []byte(text)) || bytes.Contains(args, []byte(text))) {
			found = append(found, s.pid)
		}
	}
	return found
}

// leftNothing checks that a test's end is the end of everything that its executor made.
func (b *bench) leftNothing(dir string, before holdings) {
	b.Helper()
	if pids := living(b.T, b.unique); len(pids) > 0 {
		b.Errorf("processes %v are left", pids)
	}
	if err := goleak.Find(b.goroutines); err != nil {
		b.Error(err)
	}
	for limit := time.Now().Add(within); ; {
		after := resources(b.T)
		if after == before {
			break
		}
		if time.Now().After(limit) {
			b.Errorf("before the test %+v, after it %+v", before, after)
			break
		}
	}
	found, err := filepath.Glob(filepath.Join(dir, "state", "*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, path := range found {
		if !slices.Contains(b.options.Keeps, filepath.Base(path)) {
			b.Errorf("%s is left", path)
		}
	}
	if secrets, _ := filepath.Glob("/dev/shm/*" + b.order.Context.Attempt.String() + "*"); len(secrets) > 0 {
		b.Errorf("%v are left", secrets)
	}
}
