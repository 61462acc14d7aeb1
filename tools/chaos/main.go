//go:build linux

// Chaos lets bad things happen to a daemon, two agents and their jobs, all of them real processes, and then looks whether a
// promise was broken. Which things happen, and when, follows from a seed; what the machine makes of it does not, so that a
// seed that has failed once may have to be played a few times.
//
//	go run ./tools/chaos -runs 20 -seed 1
//
// It refuses nothing that a bad day could bring except another time scale: leases live for six seconds here.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/fleet"
)

// options are the flags.
type options struct {
	runs     int
	seed     uint64
	parallel int
	keep     string
	show     bool

	workload workload
}

func main() {
	o := options{}
	flag.IntVar(&o.runs, "runs", 20, "how many plans to play, with as many seeds")
	flag.Uint64Var(&o.seed, "seed", 1, "the first seed")
	flag.IntVar(&o.parallel, "parallel", 4, "how many to play at a time; they mostly wait")
	flag.StringVar(&o.keep, "keep", "", "keep the folders of runs that failed in this folder")
	flag.BoolVar(&o.show, "show", false, "print the plans instead of playing them")
	flag.StringVar(&o.workload.witness, "workload", "", "be a workload that tells the witness at this address what it does")
	flag.IntVar(&o.workload.lines, "lines", 1, "of the workload")
	flag.DurationVar(&o.workload.lasts, "lasts", time.Second, "the workload, without its last breath")
	flag.IntVar(&o.workload.exit, "exit", 0, "exit code of the workload")
	flag.BoolVar(&o.workload.deaf, "deaf", false, "the workload ignores soft signals")
	flag.Parse()
	os.Exit(o.main())
}

// main returns the exit code: 1 where an invariant was broken, 2 where chaos itself failed.
func (o options) main() int {
	if o.workload.witness != "" {
		o.workload.attempt = os.Getenv("FORGEYARD_ATTEMPT_ID")
		code, err := o.workload.run()
		if err != nil {
			fmt.Fprintln(os.Stderr, "workload:", err)
			return 3
		}
		return code
	}
	if o.show {
		for i := range o.runs {
			printPlan(os.Stdout, o.seed+uint64(i))
		}
		return 0
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	return o.playAll(ctx)
}

func printPlan(w io.Writer, seed uint64) {
	p := newPlan(seed)
	fmt.Fprintf(w, "seed %d: %d jobs, %d agents\n", seed, len(p.tasks), p.agents)
	for _, f := range p.faults {
		fmt.Fprintf(w, "  %v\n", f)
	}
}

// outcome is what became of one seed.
type outcome struct {
	seed   uint64
	counts counts
	broken []violation
	err    error
	folder string // kept, where something is wrong
}

// playAll plays every seed and prints the figures.
func (o options) playAll(ctx context.Context) int {
	begun := time.Now()
	var build fleet.Build
	defer build.Remove()
	programs, err := build.Programs(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	seeds := make(chan uint64)
	results := make(chan outcome)
	var wait sync.WaitGroup
	for range max(1, o.parallel) {
		wait.Go(func() {
			for seed := range seeds {
				results <- o.playOne(ctx, seed, programs)
			}
		})
	}
	go func() { // ends with the last result: playAll reads them all
		for i := range o.runs {
			seeds <- o.seed + uint64(i)
		}
		close(seeds)
		wait.Wait()
		close(results)
	}()
	return report(results, begun)
}

// playOne plays one seed in a folder of its own.
func (o options) playOne(ctx context.Context, seed uint64, programs fleet.Programs) outcome {
	out := outcome{seed: seed}
	if err := context.Cause(ctx); err != nil {
		out.err = err
		return out
	}
	folder, err := os.MkdirTemp("", "fy")
	if err != nil {
		out.err = err
		return out
	}
	log, err := os.Create(filepath.Join(folder, "chaos.log"))
	if err != nil {
		out.err = err
		return out
	}
	stamped := &stampWriter{to: log, begun: time.Now()}
	printPlan(stamped, seed)
	jobs, counted, err := play(ctx, newPlan(seed), seed, folder, programs, stamped)
	out.counts, out.err = counted, err
	out.broken = check(jobs)
	for _, v := range out.broken {
		fmt.Fprintf(stamped, "broken: %v\n", v)
	}
	out.err = errors.Join(out.err, log.Close())
	if len(out.broken) == 0 && out.err == nil {
		out.err = os.RemoveAll(folder)
		return out
	}
	out.folder = folder
	if o.keep != "" {
		kept := filepath.Join(o.keep, fmt.Sprintf("seed-%d", seed))
		if said, err := exec.Command("cp", "-a", folder, kept).CombinedOutput(); err != nil { // sockets and all
			out.err = errors.Join(out.err, fmt.Errorf("keep: %w: %s", err, said))
		}
		_ = os.RemoveAll(folder) // it is copied, or copying it has failed and was reported
		out.folder = kept
	}
	return out
}

// report prints each failure as it comes, and the figures at the end.
func report(results <-chan outcome, begun time.Time) int {
	code, runs, broken := 0, 0, 0
	total := counts{}
	for r := range results {
		runs++
		total.add(r.counts)
		broken += len(r.broken)
		for _, v := range r.broken {
			fmt.Printf("seed %d: %v\n", r.seed, v)
			code = max(code, 1)
		}
		if r.err != nil {
			fmt.Printf("seed %d: %v\n", r.seed, r.err)
			code = 2
		}
		if r.folder != "" {
			fmt.Printf("seed %d: everything about it is in %s\n", r.seed, r.folder)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(total)) {
		fmt.Printf("%6d  %s\n", total[k], k)
	}
	fmt.Printf("%d runs, %d violations, %.0f s\n", runs, broken, time.Since(begun).Seconds())
	return code
}

// stampWriter puts the time in front of each line. Whoever writes writes whole lines.
type stampWriter struct {
	mu    sync.Mutex
	to    io.Writer
	begun time.Time
}

func (w *stampWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, err := fmt.Fprintf(w.to, "%7.2f %s", time.Since(w.begun).Seconds(), p); err != nil {
		return 0, err
	}
	return len(p), nil
}
