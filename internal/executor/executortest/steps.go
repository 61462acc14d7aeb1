package executortest

import (
	"fmt"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/forgeyard/forgeyard/internal/forge"
)

var ends = []testCase{
	{name: "exit codes are told as they are", run: exitCodes},
	{name: "deaths by a signal are told apart from exit codes", run: signals},
	{name: "a program that is not there ends with 127, one that cannot be run with 126", run: unstartable},
}

func exitCodes(b *bench) {
	for _, code := range []uint8{0, 1, 2, 126, 127, 137, 255} {
		b.order.Context = newContext()
		class := forge.ExitCode
		if code == 0 {
			class = forge.Succeeded
		}
		o := b.run(script(fmt.Sprintf("exit %d", code)))
		b.want(o.Result, class, code, 0)
		if o.StopSeen != forge.CancelNone || o.Bitten {
			b.Errorf("%+v: nobody stopped it", o)
		}
	}
}

func signals(b *bench) {
	for name, number := range map[string]uint8{"KILL": 9, "SEGV": 11, "TERM": 15} {
		b.order.Context = newContext()
		b.want(b.run(script("kill -"+name+" $$; sleep 60")).Result, forge.Signal, 0, number)
	}
}

func unstartable(b *bench) {
	b.want(b.run(argv("no-such-program-anywhere")).Result, forge.ExitCode, 127, 0)
	for _, s := range []forge.Step{argv("/etc/passwd"), argv("./../home"), {Argv: []string{"true"}, Dir: "no/such/folder", When: forge.WhenSuccess}} {
		b.order.Context = newContext()
		b.want(b.run(s).Result, forge.ExitCode, 126, 0)
	}
	notices := 0
	for _, e := range b.sink.Events() {
		if n, ok := e.(forge.Notice); ok && n.Level == forge.LevelError {
			notices++
		}
	}
	if notices != 4 {
		b.Errorf("%d notices say why, want 4", notices)
	}
}

var steps = []testCase{
	{name: "steps run one after the other, as arguments or as a script", run: order},
	{name: "conditions and allowed failures decide what runs", run: conditions},
	{name: "each step has its own times and result", run: stepTimes},
	{name: "a step that takes too long is ended, and what follows runs by its condition", run: stepTimeout},
	{name: "a job that takes too long is ended with its limit", run: runTimeout},
	{name: "outputs of a step are bounded", run: outputsBound},
	{name: "a script's text is in no log but its own", run: scriptIsNotLogged},
}

func order(b *bench) {
	o := b.run(argv("printf", "%s|", "one", "two words"), script("printf %s three; exit 0"), argv("sh", "-c", "printf '|%s' $0", "four"))
	b.want(o.Result, forge.Succeeded, 0, 0)
	b.stdout("one|two words|three|four")
	want := []any{
		forge.StepStarted{Step: 0},
		"one|two words|",
		forge.StepFinished{Result: o.Result.Steps[0]},
		forge.StepStarted{Step: 1},
		"three",
		forge.StepFinished{Result: o.Result.Steps[1]},
		forge.StepStarted{Step: 2},
		"|four",
		forge.StepFinished{Result: o.Result.Steps[2]},
	}
	if !b.options.Confined {
		want = append([]any{forge.Notice{Level: forge.LevelWarning}}, want...)
	}
	if diff := cmp.Diff(want, b.sink.Story(), cmpopts.IgnoreFields(forge.Notice{}, "Text")); diff != "" {
		b.Error(diff)
	}
}

func conditions(b *bench) {
	when := func(s forge.Step, w forge.When) forge.Step { s.When = w; return s }
	allowed := script("echo allowed; exit 7")
	allowed.AllowFailure.ExitCodes = []uint8{3, 7}
	any := script("echo any; kill -9 $$")
	any.AllowFailure.Any = true
	o := b.run(
		allowed, any,
		when(script("echo not yet failed"), forge.WhenFailure),
		script("echo fails; exit 3"),
		script("echo after a failure"),
		when(script("echo failure; exit 4"), forge.WhenFailure),
		when(script("echo always"), forge.WhenAlways),
		when(script("echo never"), forge.WhenNever),
	)
	b.want(o.Result, forge.ExitCode, 3, 0)
	b.stdout("allowed\nany\nfails\nfailure\nalways\n")
	var got []string
	for _, s := range o.Result.Steps {
		got = append(got, fmt.Sprint(s.Index, s.Class, s.ExitCode, s.Signal))
	}
	want := []string{"0 ExitCode 7 0", "1 Signal 0 9", "3 ExitCode 3 0", "5 ExitCode 4 0", "6 Succeeded 0 0"}
	if diff := cmp.Diff(want, got); diff != "" {
		b.Error(diff)
	}
}

// Case B16.
func stepTimes(b *bench) {
	slow := script("sleep 60")
	slow.Timeout = 300 * time.Millisecond
	o := b.run(script("sleep 0.1"), slow)
	b.want(o.Result, forge.TimedOut, 0, 15)
	if len(o.Result.Steps) != 2 {
		b.Fatalf("%+v", o.Result.Steps)
	}
	first, second := o.Result.Steps[0], o.Result.Steps[1]
	if first.Class != forge.Succeeded || second.Class != forge.TimedOut {
		b.Errorf("%+v", o.Result.Steps)
	}
	if first.Duration < 100*time.Millisecond || second.Duration < slow.Timeout || second.Start < first.Start+100 {
		b.Errorf("times %+v", o.Result.Steps)
	}
	if sum := first.Duration + second.Duration; o.Result.Duration < sum {
		b.Errorf("the whole lasted %v, its steps %v", o.Result.Duration, sum)
	}
}

// Cases B02 and B10.
func stepTimeout(b *bench) {
	slow := script("(while :; do echo x >>child; sleep 0.01; done) & sleep 60")
	slow.Timeout = 300 * time.Millisecond
	after := script("cat child | wc -l >first; sleep 0.2; cat child | wc -l >second; echo failure")
	after.When = forge.WhenFailure
	o := b.run(slow, script("echo success"), after)
	b.want(o.Result, forge.TimedOut, 0, 15)
	if o.Result.Limit != 300 || o.Result.Peak < 300 {
		b.Errorf("limit %d ms, peak %d ms", o.Result.Limit, o.Result.Peak)
	}
	b.stdout("failure\n")
	if first, second := b.readFile("source/first"), b.readFile("source/second"); first != second {
		b.Errorf("the child of the step that timed out went on: %s, then %s lines", first, second)
	}
}

func runTimeout(b *bench) {
	b.order.Spec.Timeouts.Run = 500 * time.Millisecond
	always := script("echo always")
	always.When = forge.WhenAlways
	o := b.run(script("sleep 0.1"), script("trap 'echo bye; exit 0' TERM; sleep 60 & wait"), script("echo no"), always)
	b.want(o.Result, forge.TimedOut, 0, 0)
	if o.Result.Limit != 500 || o.Result.Peak < 500 || o.StopSeen != forge.CancelNone {
		b.Errorf("%+v", o)
	}
	b.stdout("bye\nalways\n")
}

func outputsBound(b *bench) {
	fill := script(`head -c 32768 /dev/zero >"$FORGEYARD_OUTPUT"`)
	b.want(b.run(fill).Result, forge.Succeeded, 0, 0)
	b.order.Context = newContext()
	o := b.run(script(`head -c 32000 /dev/zero >"$FORGEYARD_OUTPUT"; head -c 800 /dev/zero >"$FORGEYARD_OUTPUT_DIR/more"`))
	b.want(o.Result, forge.OutputTooLarge, 0, 0)
	if o.Result.Limit != 32768 || o.Result.Peak <= 32768 {
		b.Errorf("limit %d, peak %d", o.Result.Limit, o.Result.Peak)
	}
}

// Case B69.
func scriptIsNotLogged(b *bench) {
	w := b.start(script("echo ready; : inline-token-canary; sleep 60"))
	b.sink.Await("ready")
	w.Stop(forge.CancelUser)
	b.outcome(w)
	if story := fmt.Sprint(b.sink.Story()...); strings.Contains(story, "canary") {
		b.Errorf("the log shows the script: %s", story)
	}
}
