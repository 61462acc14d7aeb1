package executortest

import (
	"fmt"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

var leftovers = []testCase{
	{name: "children that hold the output do not hold up the end", run: heldPipe},
	{name: "children live on between steps, and not beyond the last", run: betweenSteps},
	{name: "a loop that forks sessions leaves nothing", run: forkLoop, supervised: true},
	{name: "thousands of orphans are reaped", run: orphans},
	{name: "a clean environment hides nobody", run: cleanEnvironment, supervised: true},
	{name: "a fork bomb is put out", run: bomb, supervised: true},
}

func heldPipe(b *bench) {
	o := b.run(script("sleep 999 & echo done"))
	b.want(o.Result, forge.Succeeded, 0, 0)
	if o.Result.Duration > 30*time.Second {
		b.Errorf("it took %v", o.Result.Duration)
	}
	b.stdout("done\n")
}

func betweenSteps(b *bench) {
	b.run(script("sleep 999 & echo $! >pid"), script("kill -0 $(cat pid) && echo alive"))
	b.stdout("alive\n")
}

// Case B01.
func forkLoop(b *bench) {
	w := b.start(script("i=0; while :; do setsid sleep 999 & sleep 0.01; i=$((i+1)); echo $i; done"), script("echo never"))
	b.sink.Await("\n50\n")
	w.Kill()
	b.outcome(w)
	b.order.Context = newContext()
	b.want(b.run(script("i=0; while [ $i -lt 100 ]; do setsid sleep 999 & i=$((i+1)); sleep 0.01; done; exit 0")).Result, forge.Succeeded, 0, 0)
}

// Case B14.
func orphans(b *bench) {
	n := 5000
	if testing.Short() {
		n = 500
	}
	o := b.run(script(fmt.Sprintf("i=0; while [ $i -lt %d ]; do (: &) ; i=$((i+1)); done; echo done", n)))
	b.want(o.Result, forge.Succeeded, 0, 0)
}

func cleanEnvironment(b *bench) {
	w := b.start(script("env -i setsid sleep 999." + digits(b.unique) + " </dev/null >/dev/null 2>&1 & echo ready; sleep 999"))
	b.sink.Await("ready")
	w.Kill()
	b.outcome(w)
	if pids := living(b.T, "999."+digits(b.unique)); len(pids) > 0 {
		b.Errorf("%v live", pids)
	}
}

// digits makes a number of a name.
func digits(unique string) string {
	out := make([]byte, 0, 16)
	for _, c := range []byte(unique[len(unique)-12:]) {
		out = append(out, '0'+c%10)
	}
	return string(out)
}

func bomb(b *bench) {
	// Bounded to 500, in groups of their own and not, so that a test that fails does not take the machine with it.
	w := b.start(script(`f() { [ "$1" -gt 0 ] || { echo ready; exec sleep 999; }
		f $(($1-1)) & setsid sh -c 'sleep 999 & sleep 999' & f $(($1-1)) & wait; }; f 6`))
	b.sink.Await("ready")
	w.Kill()
	b.outcome(w)
}
