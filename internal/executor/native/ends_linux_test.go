package native_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

func needs(t *testing.T, e *native.Executor, level sandbox.Level) {
	t.Helper()
	if r := e.Report(); !r.Has(level) {
		t.Skipf("this machine gives no %s", level)
	}
}

// Case B11.
func TestAStepThatIsEndedForMemoryIsNamedSoWithLimitAndPeak(t *testing.T) {
	e := openExecutor(t, native.Config{})
	needs(t, e, sandbox.LevelCgroupMemory)
	const limit = 64 * forge.MiB
	for name, c := range map[string]struct {
		script string
		class  forge.Class
	}{
		"killed itself":      {"exec tail /dev/zero", forge.OutOfMemory},
		"the child was":      {"tail /dev/zero", forge.OutOfMemory},
		"and it was ignored": {"tail /dev/zero; echo went on; exit 0", forge.Succeeded},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJob(t, c.script, "echo next")
			j.order.Spec.Resources.Memory = limit
			r := j.run(e).Result
			if r.Class != c.class || r.Steps[0].Class != c.class || r.Steps[1].Class != forge.Succeeded {
				t.Errorf("ended %+v, want %v", r, c.class)
			}
			if c.class == forge.OutOfMemory && (r.Limit != uint64(limit) || r.Peak == 0 || r.Peak > r.Limit) {
				t.Errorf("limit %d, peak %d", r.Limit, r.Peak)
			}
			if n := j.notices(); strings.Count(n, "Out of memory: the system killed a process. The limit is 64 MiB") != 1 {
				t.Errorf("the log says %q", n)
			}
		})
	}
}

func TestAStepWhoseForksAreRefusedIsNamedSoWithLimitAndPeak(t *testing.T) {
	e := openExecutor(t, native.Config{})
	needs(t, e, sandbox.LevelCgroupPids)
	j := newJob(t, "i=0; while [ $i -lt 100 ]; do sleep 999 & i=$((i+1)); done", "echo next")
	j.order.Spec.Processes = 40
	r := j.run(e).Result
	if r.Class != forge.PidsExhausted || r.Limit != 40 || r.Peak != 40 {
		t.Errorf("ended %+v", r)
	}
	if n := j.notices(); !strings.Contains(n, "At most 40 run at a time here; the peak was 40") {
		t.Errorf("the log says %q", n)
	}
}

// Cases B12 and B17.
func TestAFirstProcessThatIsKilledFromOutsideEndsItsAttemptByThatSignal(t *testing.T) {
	e := openExecutor(t, native.Config{})
	j := newJob(t, `setsid sleep 999 & trap "" TERM; echo ready; sleep 999`, "echo never")
	w := j.start(e)
	j.sink.Await("ready")
	if err := unix.Kill(firstOf(t, j.unique), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	o := j.end(w)
	t.Logf("it took %v", time.Since(began))
	if o.Result.Class != forge.Signal || o.Result.Signal != 9 || o.Bitten || o.StopSeen != forge.CancelNone || len(o.Result.Steps) != 1 {
		t.Errorf("outcome %+v", o)
	}
	if left := inside(j.unique); len(left) > 0 {
		t.Errorf("%v live", left)
	}
}

func TestALauncherThatIsKilledEndsItsAttemptsAndIsReplacedWithTheNext(t *testing.T) {
	e := openExecutor(t, native.Config{Pool: 1})
	j := newJob(t, "echo ready; sleep 999", "echo never")
	w := j.start(e)
	j.sink.Await("ready")
	if err := unix.Kill(parentOf(t, firstOf(t, j.unique)), unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if o := j.end(w); o.Result.Class != forge.Signal || o.Result.Signal != 9 {
		t.Errorf("outcome %+v", o)
	}
	if left := inside(j.unique); len(left) > 0 {
		t.Errorf("%v live", left)
	}
	next := newJob(t, "echo again")
	if o := next.run(e); o.Result.Class != forge.Succeeded || next.sink.Text(forge.LogStdout) != "again\n" {
		t.Errorf("the next ended %+v", o)
	}
}

func TestASuspendedFirstProcessDoesNotHoldUpAKill(t *testing.T) {
	e := openExecutor(t, native.Config{})
	j := newJob(t, "echo ready; sleep 999")
	w := j.start(e)
	j.sink.Await("ready")
	if err := unix.Kill(firstOf(t, j.unique), unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.Bite(false)
	if o := j.end(w); o.Result.Class != forge.Lost || !o.Bitten {
		t.Errorf("outcome %+v", o)
	}
	if left := inside(j.unique); len(left) > 0 {
		t.Errorf("%v live", left)
	}
}
