package sim_test

import (
	"bufio"
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sim"
)

// TestNoScheduleBreaksAuthority is the short form of what `make sim` runs at length: I01–I09, I14, I15, I20, I24, I27, I29,
// I32 and I34 hold over these schedules, and everything ends.
func TestNoScheduleBreaksAuthority(t *testing.T) {
	count := uint64(600)
	if testing.Short() {
		count = 60
	}
	report := sim.RunMany(sim.Batch{First: 7_000_000, Count: count, Replay: 100})
	if v := report.Violation; v != nil {
		t.Fatalf("seed %d: %v\ngo run ./tools/sim -seed %d -trace", v.Seed, v.Violation, v.Seed)
	}
	if len(report.Diverged) > 0 {
		t.Fatalf("seeds %v do not give the same schedule twice", report.Diverged)
	}
	for _, s := range []sim.State{sim.ClaimAccepted, sim.ResyncContinued, sim.AcceptedExpired, sim.CompletionTaken, sim.CompletionLate, sim.DeadlineKill} {
		if report.States[s] == 0 {
			t.Errorf("%v was never reached: the schedules do not test what they are for", s)
		}
	}
}

// TestALeaseGoesOnAtAnotherDaemon: what a daemon remembers is never needed. Schedules have two of them, each with its own
// memory, and agents change between them in the middle of their work.
func TestALeaseGoesOnAtAnotherDaemon(t *testing.T) {
	report := sim.RunMany(sim.Batch{First: 8_000_000, Count: 60})
	if v := report.Violation; v != nil {
		t.Fatalf("seed %d: %v", v.Seed, v.Violation)
	}
	if n := report.States[sim.ContinuedElsewhere]; n < 10 {
		t.Errorf("%d leases went on at another daemon in %d schedules", n, report.Schedules)
	}
}

func TestAScheduleFollowsFromItsSeed(t *testing.T) {
	for seed := range uint64(8) {
		a := sim.Run(sim.Options{Seed: seed, Trace: true})
		b := sim.Run(sim.Options{Seed: seed, Trace: true})
		if !slices.Equal(a.Trace, b.Trace) || a.Digest != b.Digest {
			t.Errorf("seed %d gives two schedules", seed)
		}
		silent := sim.Run(sim.Options{Seed: seed})
		if silent.Digest != a.Digest || silent.Steps != a.Steps {
			t.Errorf("seed %d: watching a schedule changes it", seed)
		}
	}
	if sim.Run(sim.Options{Seed: 1}).Digest == sim.Run(sim.Options{Seed: 2}).Digest {
		t.Error("two seeds give one schedule")
	}
}

func TestRealBytesChangeNothing(t *testing.T) {
	for seed := range uint64(20) {
		plain, bytes := sim.Run(sim.Options{Seed: seed}), sim.Run(sim.Options{Seed: seed, Bytes: true})
		if plain.Violation != nil || bytes.Violation != nil || plain.Digest != bytes.Digest {
			t.Errorf("seed %d goes another way in real bytes: %v, %v", seed, plain.Violation, bytes.Violation)
		}
	}
}

//go:embed testdata/seeds
var oldSeeds string

func TestOldFaultsDoNotComeBack(t *testing.T) {
	lines := bufio.NewScanner(strings.NewReader(oldSeeds))
	ran := 0
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), "#") {
			continue
		}
		number, what, _ := strings.Cut(lines.Text(), "\t")
		seed, err := strconv.ParseUint(number, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if r := sim.Run(sim.Options{Seed: seed}); r.Violation != nil {
			t.Errorf("seed %d (%s): %v", seed, what, r.Violation)
		}
		ran++
	}
	if ran == 0 {
		t.Error("no seeds")
	}
}

// TestSmallWorldsInEveryOrder: from every state of every run, each other event and each fault is tried next, and then all
// goes its natural way.
func TestSmallWorldsInEveryOrder(t *testing.T) {
	for _, shape := range sim.Explorables {
		x := sim.Explore(shape, 1, 100_000)
		if x.Violation != nil {
			t.Fatalf("%s, %v: %v\n%s", shape.Name, x.Script, x.Violation, strings.Join(tail(sim.Retrace(shape, x.Script)), "\n"))
		}
		if !x.Exhausted || x.Runs < 1000 {
			t.Errorf("%s: %d runs, exhausted %v", shape.Name, x.Runs, x.Exhausted)
		}
		t.Logf("%s: %d runs, %d states, at most %d steps", shape.Name, x.Runs, x.States, x.Longest)
	}
}

func tail(lines []string) []string { return lines[max(0, len(lines)-40):] }

func BenchmarkSchedule(b *testing.B) {
	b.ReportAllocs()
	for i := range b.N {
		sim.Run(sim.Options{Seed: uint64(i)})
	}
}
