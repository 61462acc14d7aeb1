package native_test

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/executortest"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// patience bounds every wait of these tests. Nothing of them is meant to take so long.
const patience = 3 * time.Minute

// A job is one attempt that a test runs.
type job struct {
	*testing.T
	order  executor.Order
	sink   *executortest.Sink
	unique string // in the environment of its steps, and nowhere else on the machine
}

func newJob(t *testing.T, scripts ...string) *job {
	t.Helper()
	j := &job{T: t, sink: executortest.NewSink(), unique: "native-test-" + rand.Text()}
	j.order = newOrder(filepath.Join(t.TempDir(), "work"), j.unique, scripts...)
	j.order.Output = j.sink
	return j
}

func newOrder(folder, unique string, scripts ...string) executor.Order {
	o := executor.Order{
		Context: forge.AttemptContext{Attempt: ident.New[forge.AttemptID]()}, Spec: forge.DefaultJobSpec(), Folder: folder,
		Policy: forge.DefaultLeasePolicy(), Deadline: clock.Boot().Add(time.Hour),
	}
	o.Spec.Env = []forge.EnvVar{{Name: "UNIQUE", Value: unique}}
	o.Spec.Timeouts.Grace = time.Second
	for _, script := range scripts {
		o.Spec.Steps = append(o.Spec.Steps, forge.Step{
			Script: script, Shell: []string{"sh", "-c"}, Dir: forge.SourceDir, When: forge.WhenAlways,
		})
	}
	return o
}

// start starts it.
func (j *job) start(e *native.Executor) executor.Workload {
	j.Helper()
	w, err := e.Prepare(j.Context(), j.order)
	if err != nil {
		j.Fatal(err)
	}
	j.Cleanup(func() { _ = w.Close() })
	if err := w.Start(nil); err != nil {
		j.Fatal(err)
	}
	return w
}

// end waits for its end.
func (j *job) end(w executor.Workload) executor.Outcome {
	j.Helper()
	select {
	case <-w.Done():
	case <-time.After(patience):
		j.Fatal("it does not end")
	}
	o := w.Outcome()
	if err := o.Result.Validate(); err != nil {
		j.Error("result: ", err)
	}
	return o
}

func (j *job) run(e *native.Executor) executor.Outcome {
	j.Helper()
	return j.end(j.start(e))
}

// notices joins what the log says besides the output.
func (j *job) notices() string {
	var text strings.Builder
	for _, e := range j.sink.Events() {
		if n, ok := e.(forge.Notice); ok {
			fmt.Fprintf(&text, "%v: %s\n", n.Level, n.Text)
		}
	}
	return text.String()
}

// inside lists the living processes that have a text in their environment.
func inside(unique string) []int {
	var found []int
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if text, err := os.ReadFile(path); err == nil && pid != os.Getpid() && bytes.Contains(text, []byte("UNIQUE="+unique)) {
			found = append(found, pid)
		}
	}
	return found
}

// parentOf returns the parent of a process.
func parentOf(tb testing.TB, pid int) (ppid int) {
	tb.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		tb.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\nPPid:")
	if _, err := fmt.Sscan(rest, &ppid); err != nil {
		tb.Fatal(err)
	}
	return ppid
}

// firstOf returns the host's id of the first process of the sandbox that a step runs in.
func firstOf(tb testing.TB, unique string) int {
	tb.Helper()
	top := 0
	for _, pid := range inside(unique) {
		if top == 0 || pid < top {
			top = pid
		}
	}
	if top == 0 {
		tb.Fatal("no step runs")
	}
	for {
		parent := parentOf(tb, top)
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", top))
		if err != nil {
			tb.Fatal(err)
		}
		_, rest, _ := strings.Cut(string(text), "\nNSpid:")
		line, _, _ := strings.Cut(rest, "\n")
		if ids := strings.Fields(line); ids[len(ids)-1] == "1" {
			return top
		}
		top = parent
	}
}

// eventually waits for a state of the machine of which nobody tells.
func eventually(tb testing.TB, what string, met func() bool) {
	tb.Helper()
	for limit := time.Now().Add(patience); !met(); {
		if time.Now().After(limit) {
			tb.Fatalf("it does not come to pass that %s", what)
		}
	}
}
