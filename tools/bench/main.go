//go:build linux

// Bench measures what the product promises about speed, each figure beside a limit that the same run has measured: what
// this machine does for a program without any of our logic. A figure is its ratio to that; the numbers beside it are for
// the curious, and differ from machine to machine and from minute to minute.
//
//	go run ./tools/bench control        every figure of a group
//	go run ./tools/bench -json all      one object a line
//
// It asserts nothing: docs/testing.md has the figures last seen and what is expected of them.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/executor/process"
)

// options are the flags.
type options struct {
	runs    int
	json    bool
	profile string // file for a profile of this process
}

func main() {
	native.Main()
	process.Supervise() // an attempt's own supervisor is this program
	o := options{}
	flag.IntVar(&o.runs, "runs", 5, "how often to measure, each time beside the limit")
	flag.BoolVar(&o.json, "json", false, "print one JSON object for each figure")
	flag.StringVar(&o.profile, "profile", "", "write a profile of what this process does to a file, for go tool pprof")
	flag.Usage = func() {
		fmt.Fprintf(os.Stderr, "usage: bench [flags] NAME…\n\nNAME is all, a figure, or a group: %s\n\n", strings.Join(groups(figures()), ", "))
		flag.PrintDefaults()
	}
	role := flag.String("role", "", "be a part of a measurement; for bench itself")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *role != "" {
		if err := play(*role); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	if flag.NArg() == 0 || o.runs < 1 {
		flag.Usage()
		os.Exit(64)
	}
	if err := o.profiled(func() error { return o.measureAll(ctx, flag.Args()) }); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// figures lists everything that can be measured.
func figures() []figure {
	return []figure{
		rttFigure, ingestFigure, spoolFigure, pourFigure, submitFigure, idleFigure, coldFigure, poolFigure, heapFigure, rateFigure,
		loadedFigure, lightFigure, uploadFigure, downloadFigure, compressibleFigure,
		treeColdFigure, treeUnchangedFigure, warmFigure,
		noopLatencyFigure, noopRateFigure, startFigure, overheadFigure,
	}
}

// play is a process that bench has started beside itself.
func play(role string) error {
	switch role {
	case roleBareServer:
		return bareServer(os.Stdin, os.Stdout)
	default:
		return fmt.Errorf("no role %q", role)
	}
}

// profiled does something and writes a profile of it where one is wanted.
func (o options) profiled(do func() error) error {
	if o.profile == "" {
		return do()
	}
	file, err := os.Create(o.profile)
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	err = do()
	pprof.StopCPUProfile()
	return errors.Join(err, file.Close())
}

// measureAll measures what is named and prints it. What was measured before an error is printed too.
func (o options) measureAll(ctx context.Context, wanted []string) error {
	defer programs.Remove()
	var selected []figure
	for _, name := range wanted {
		found := selectFigures(figures(), name)
		if len(found) == 0 {
			return fmt.Errorf("no figure %q; there are %s", name, strings.Join(groups(figures()), ", "))
		}
		selected = append(selected, found...)
	}
	var results []result
	var problem error
	for _, f := range selected {
		fmt.Fprintf(os.Stderr, "measuring %s…\n", f.name)
		r, err := measure(ctx, f, o)
		if err != nil {
			problem = err
			break
		}
		results = append(results, r)
	}
	show := printTable
	if o.json {
		show = printJSON
	}
	if err := show(os.Stdout, results); err != nil {
		return err
	}
	return problem
}
