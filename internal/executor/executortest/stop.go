package executortest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func asSetup(err error, target **executor.SetupError) bool { return errors.As(err, target) }

// stay is a command that says a word and stays. A shell looks after its traps only when its command has ended, so the
// command itself says that it runs.
func stay(word string) string { return "sh -c 'echo " + word + "; exec sleep 999'" }

var stops = []testCase{
	{name: "a cancel lets a step say goodbye, and counts although it ended well", run: politeCancel},
	{name: "what ignores the soft signal is killed after the grace", run: deafChildren, supervised: true},
	{name: "after a cancel only steps run that run always", run: alwaysAfterCancel},
	{name: "a stop before the start ends at once", run: stopBeforeStart},
	{name: "the first reason counts", run: firstReason},
	{name: "a stop after the end is not seen", run: stopAfterEnd},
	{name: "a stopped step can still be ended", run: stoppedStep},
	{name: "a kill ends everything at once", run: kill},
	{name: "preparation ends with its context", run: prepareCancelled},
	{name: "a workload starts once", run: startTwice},
	{name: "what a time-out ended does not write into the next attempt", run: timeoutThenAgain, supervised: true},
	{name: "what cannot be confined as asked is refused", run: wrongSandbox},
}

// Case B04.
func politeCancel(b *bench) {
	w := b.start(script("trap 'echo bye; exit 0' TERM; " + stay("ready")))
	b.sink.Await("ready")
	w.Stop(forge.CancelUser)
	o := b.outcome(w)
	if o.StopSeen != forge.CancelUser || o.Bitten || o.Result.Class != forge.Cancelled || o.Result.ExitCode != 0 {
		b.Errorf("%+v", o)
	}
	b.stdout("ready\nbye\n")
}

// Case B02.
func timeoutThenAgain(b *bench) {
	writer := script(`setsid sh -c 'trap "" TERM HUP; while :; do echo first; echo first >>"$FORGEYARD_WORK/output"; sleep 0.01; done' & sleep 999`)
	writer.Timeout = 500 * time.Millisecond
	b.order.Spec.Timeouts.Grace = 100 * time.Millisecond
	b.want(b.run(writer).Result, forge.TimedOut, 0, 15)
	first := b.order.Folder
	if !strings.Contains(b.readFile("output"), "first\n") {
		b.Error("the first attempt wrote nothing")
	}
	b.order.Folder, b.sink = first+"-again", NewSink()
	b.order.Context, b.order.Output = newContext(), b.sink
	b.run(script(`echo second >"$FORGEYARD_WORK/output"; sleep 0.3; cat "$FORGEYARD_WORK/output"`))
	b.stdout("second\n")
}

// Case B05.
func deafChildren(b *bench) {
	b.order.Spec.Timeouts.Grace = 300 * time.Millisecond
	w := b.start(script(`nohup setsid sh -c 'trap "" TERM HUP; echo ready; sleep 999; sleep 999' & wait`))
	b.sink.Await("ready")
	asked := clock.Boot()
	w.Stop(forge.CancelUser)
	o := b.outcome(w)
	if o.StopSeen != forge.CancelUser || o.Result.Class != forge.Cancelled {
		b.Errorf("%+v", o)
	}
	if took := clock.Boot().Sub(asked); took < b.order.Spec.Timeouts.Grace {
		b.Errorf("it was killed after %v, before its grace ended", took)
	}
}

func alwaysAfterCancel(b *bench) {
	always := script("echo always")
	always.When = forge.WhenAlways
	failure := script("echo failure")
	failure.When = forge.WhenFailure
	w := b.start(script("echo ready; sleep 999"), script("echo next"), failure, always)
	b.sink.Await("ready")
	w.Stop(forge.CancelDisabled)
	o := b.outcome(w)
	if o.StopSeen != forge.CancelDisabled || o.Result.Class != forge.Interrupted || len(o.Result.Steps) != 2 {
		b.Errorf("%+v", o)
	}
	b.stdout("ready\nalways\n")
}

func stopBeforeStart(b *bench) {
	w := b.prepare(script("echo no"))
	w.Stop(forge.CancelUser)
	o := b.outcome(w)
	if o.StopSeen != forge.CancelUser || o.Result.Class != forge.Cancelled || len(o.Result.Steps) != 0 {
		b.Errorf("%+v", o)
	}
	if err := w.Start(nil); !errors.Is(err, executor.ErrTooLate) {
		b.Errorf("Start after the end: %v", err)
	}
	b.stdout("")
}

func firstReason(b *bench) {
	w := b.start(script("trap 'sleep 0.2; exit 3' TERM; " + stay("ready")))
	b.sink.Await("ready")
	w.Stop(forge.CancelMaxLifetime)
	w.Stop(forge.CancelUser)
	if o := b.outcome(w); o.StopSeen != forge.CancelMaxLifetime || o.Result.Class != forge.TimedOut {
		b.Errorf("%+v", o)
	}
}

func stopAfterEnd(b *bench) {
	w := b.start(script("exit 3"))
	<-w.Done()
	w.Stop(forge.CancelUser)
	w.Bite(false)
	w.Kill()
	o := b.outcome(w)
	b.want(o.Result, forge.ExitCode, 3, 0)
	if o.StopSeen != forge.CancelNone || o.Bitten {
		b.Errorf("%+v", o)
	}
}

func stoppedStep(b *bench) {
	// Who is not stopped yet when the stop comes would be stopped after it, and nobody lets it go on again.
	w := b.start(script(`trap 'echo bye; exit 0' TERM
		(while test -e /proc/$$/status && ! grep -q '^State:.*T' /proc/$$/status; do sleep 0.01; done; echo ready) &
		kill -STOP $$
		sleep 999`))
	b.sink.Await("ready")
	w.Stop(forge.CancelUser)
	b.outcome(w)
	b.stdout("ready\nbye\n")
}

func kill(b *bench) {
	w := b.start(script("trap 'echo bye' TERM; " + stay("ready")))
	b.sink.Await("ready")
	w.Kill()
	o := b.outcome(w)
	b.want(o.Result, forge.Signal, 0, 9)
	if o.StopSeen != forge.CancelNone || o.Bitten {
		b.Errorf("%+v", o)
	}
	b.stdout("ready\n")
}

func prepareCancelled(b *bench) {
	ctx, cancel := context.WithCancelCause(context.Background())
	why := errors.New("no longer wanted")
	cancel(why)
	b.order.Spec.Steps = []forge.Step{script("echo no")}
	w, err := b.exec.Prepare(ctx, b.order)
	if setup := (*executor.SetupError)(nil); err != nil && (!asSetup(err, &setup) || !errors.Is(err, why)) {
		b.Errorf("Prepare: %v", err)
	}
	if err == nil { // it was faster
		_ = w.Close()
	}
	b.stdout("")
}

func startTwice(b *bench) {
	w := b.start(script("echo once"))
	if err := w.Start(nil); err == nil {
		b.Error("it started twice")
	}
	b.outcome(w)
	b.stdout("once\n")
}

func wrongSandbox(b *bench) {
	b.order.Spec.Sandbox = forge.SandboxNeed{Kind: b.exec.Sandbox().Kind, Levels: []string{"no-such-wall"}}
	b.order.Spec.Steps = []forge.Step{script("echo no")}
	_, err := b.exec.Prepare(context.Background(), b.order)
	if setup := (*executor.SetupError)(nil); !asSetup(err, &setup) || setup.Class != forge.SandboxSetup {
		b.Errorf("Prepare: %v", err)
	}
}

var deadlines = []testCase{
	{name: "a bite is soft, then hard, and nothing is alive at the deadline", run: deadline, supervised: true},
	{name: "a workload whose lease is renewed lives on", run: moved},
	{name: "nothing starts too near to the deadline", run: tooLate},
	{name: "a bite that is told ends it", run: told},
	{name: "a bite before the start ends it", run: biteBeforeStart},
	{name: "a bite after the end changes nothing", run: biteAfterEnd},
}

// policy is quick.
var policy = forge.LeasePolicy{KillLead: 900 * time.Millisecond, SoftGrace: 500 * time.Millisecond}

func deadline(b *bench) {
	b.order.Policy = policy
	b.order.Deadline = clock.Boot().Add(2 * time.Second)
	w := b.start(script(`trap 'echo soft' TERM; echo ready; while :; do sleep 0.05; done`))
	o := b.outcome(w)
	if left := b.order.Deadline.Sub(clock.Boot()); left < 0 {
		b.Errorf("it ended %v after its deadline", -left)
	}
	if !o.Bitten || o.Result.Class != forge.Lost || o.StopSeen != forge.CancelNone {
		b.Errorf("%+v", o)
	}
	if got := b.sink.Text(forge.LogStdout); !strings.HasPrefix(got, "ready\nsoft\n") {
		b.Errorf("output %q", got)
	}
}

func moved(b *bench) {
	b.order.Policy = policy
	b.order.Deadline = clock.Boot().Add(1500 * time.Millisecond)
	end := b.order.Deadline
	w := b.start(script("echo ready; sleep 2; echo done"))
	b.sink.Await("ready")
	w.MoveDeadline(clock.Boot().Add(time.Hour))
	w.MoveDeadline(end) // late news of an earlier one
	o := b.outcome(w)
	b.want(o.Result, forge.Succeeded, 0, 0)
	if o.Bitten {
		b.Error("it was bitten")
	}
}

func tooLate(b *bench) {
	b.order.Policy = policy
	b.order.Deadline = clock.Boot().Add(policy.KillLead)
	w := b.prepare(script("echo no"))
	if err := w.Start(nil); !errors.Is(err, executor.ErrTooLate) {
		b.Errorf("Start: %v", err)
	}
	if o := b.outcome(w); !o.Bitten || o.Result.Class != forge.Lost {
		b.Errorf("%+v", o)
	}
	b.stdout("")
}

func told(b *bench) {
	w := b.start(script("trap 'echo soft; exit 0' TERM; " + stay("ready")))
	b.sink.Await("ready")
	w.Bite(true)
	if o := b.outcome(w); !o.Bitten || o.Result.Class != forge.Lost {
		b.Errorf("%+v", o)
	}
	b.stdout("ready\nsoft\n")
	b.order.Context = newContext()
	w = b.start(script("trap 'echo soft' TERM; " + stay("again")))
	b.sink.Await("again")
	w.Bite(false)
	if o := b.outcome(w); !o.Bitten || o.Result.Class != forge.Lost {
		b.Errorf("%+v", o)
	}
}

func biteBeforeStart(b *bench) {
	w := b.prepare(script("echo no"))
	w.Bite(true)
	if o := b.outcome(w); !o.Bitten || o.Result.Class != forge.Lost {
		b.Errorf("%+v", o)
	}
	b.stdout("")
}

func biteAfterEnd(b *bench) {
	w := b.start(script("echo well"))
	<-w.Done()
	w.Bite(true)
	o := b.outcome(w)
	b.want(o.Result, forge.Succeeded, 0, 0)
	if o.Bitten {
		b.Error("it was bitten")
	}
}
