// Command sim attacks the cores of agent and daemon with simulated schedules and says what they showed.
//
//	sim [-schedules N] [-seed S]       run N schedules from seed S on; exit 1 at a violation
//	sim -seed S -trace                 run one schedule and print every step of it
//	sim -mutants [-schedules N] [NAME…]   break one rule after the other; exit 1 if one of them goes unnoticed
//	sim -explore D [-most N]           run the smallest worlds in every order with up to D deviations, N runs each at most
//
// The same seed is the same schedule, step for step, on every machine.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"github.com/forgeyard/forgeyard/internal/sim"
)

func main() {
	schedules := flag.Uint64("schedules", 2000, "how many schedules to run; with -mutants, how many each mutant may take")
	seed := flag.Uint64("seed", 1, "the first seed")
	trace := flag.Bool("trace", false, "run the schedule of the seed alone and print its steps")
	mutants := flag.Bool("mutants", false, "apply each mutant (or those named) and demand that it is caught")
	explore := flag.Int("explore", 0, "run the smallest worlds in every order with up to this many deviations")
	most := flag.Int("most", 5_000_000, "with -explore, how many runs each world may take")
	scout := flag.Bool("scout", false, "stop at the first violation, say only when; for -mutants")
	least := flag.Uint64("least", 0, "fail if an interesting state was reached less often than this")
	flag.Parse()
	debug.SetGCPercent(400) // schedules leave much behind and keep little
	switch {
	case *schedules == 0:
		fmt.Fprintln(os.Stderr, "sim: -schedules must be at least 1")
		os.Exit(64)
	case *trace:
		os.Exit(runTrace(*seed))
	case *mutants:
		os.Exit(runMutants(flag.Args(), *schedules, *seed))
	case *explore > 0:
		os.Exit(runExplore(*explore, *most))
	case flag.NArg() > 0:
		fmt.Fprintf(os.Stderr, "sim: unexpected argument %q; names go with -mutants\n", flag.Arg(0))
		os.Exit(64)
	case *scout:
		os.Exit(runScout(*seed, *schedules))
	}
	os.Exit(runBatch(*seed, *schedules, *least))
}

// runBatch runs many schedules and prints what they showed.
func runBatch(seed, schedules, least uint64) int {
	start := time.Now()
	report := sim.RunMany(sim.Batch{First: seed, Count: schedules, Replay: 100})
	took := time.Since(start)
	fmt.Printf("%d schedules from seed %d in %v (%.0f a second), %d steps, %.1f simulated hours\n",
		report.Schedules, seed, took.Round(time.Millisecond), float64(report.Schedules)/took.Seconds(), report.Steps, report.Simulated.Hours())
	fmt.Println("\nfaults injected")
	for _, k := range sim.FaultKinds() {
		fmt.Printf("  %-30v %10d\n", k, report.Faults[k])
	}
	fmt.Println("\ninteresting states reached")
	code := 0
	for _, s := range sim.States() {
		note := ""
		if report.States[s] < least {
			note, code = fmt.Sprintf("  fewer than %d", least), 1
		}
		fmt.Printf("  %-30v %10d%s\n", s, report.States[s], note)
	}
	fmt.Printf("\n%d schedules run twice, %d diverged\n", report.Replayed, len(report.Diverged))
	if len(report.Diverged) > 0 {
		fmt.Printf("not reproducible: seeds %v\n", report.Diverged)
		code = 1
	}
	if report.Violation != nil {
		return explain(report.Violation)
	}
	fmt.Println("no violation")
	return code
}

// explain runs a violating schedule again and prints the end of its history.
func explain(r *sim.Result) int {
	const most = 60
	again := sim.Run(sim.Options{Seed: r.Seed, Trace: true})
	fmt.Printf("\nseed %d violates %v\n\nthe last steps:\n", r.Seed, r.Violation)
	for _, line := range again.Trace[max(0, len(again.Trace)-most):] {
		fmt.Println(line)
	}
	fmt.Printf("\nall of it: go run ./tools/sim -seed %d -trace\n", r.Seed)
	return 1
}

func runTrace(seed uint64) int {
	r := sim.Run(sim.Options{Seed: seed, Trace: true})
	for _, line := range r.Trace {
		fmt.Println(line)
	}
	if r.Violation != nil {
		fmt.Println(r.Violation)
		return 1
	}
	fmt.Printf("%d steps, %v simulated, no violation\n", r.Steps, r.Simulated)
	return 0
}

// runScout says at which schedule the first violation shows.
func runScout(seed, schedules uint64) int {
	report := sim.RunMany(sim.Batch{First: seed, Count: schedules})
	if report.Violation == nil {
		fmt.Printf("none %d\n", report.Schedules)
		return 0
	}
	fmt.Printf("caught %d %s\n", report.Schedules, report.Violation.Violation.ID)
	return 1
}
