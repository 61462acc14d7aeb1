//go:build linux

package main

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/fleet"
)

// What a workload leaves with its witness, one set of files for each attempt.
const (
	transcriptSuffix = ".transcript" // every byte that it has written, in order
	aliveSuffix      = ".alive"      // two instants of the BOOTTIME clock: the first and the last at which it was seen alive
)

// beatEvery is how often a workload notes that it is alive: two attempts that overlap for longer are seen to.
const beatEvery = 5 * time.Millisecond

// workload is what chaos runs as a job: it writes lines that no other attempt writes, keeps its own transcript of them,
// and notes all the while that it is alive. In the end it makes its artifact of its source.
type workload struct {
	witness string // address of the one whom it tells
	attempt string
	lines   int
	lasts   time.Duration
	exit    int
	deaf    bool // ignores the soft signal
}

// run plays it and returns its exit code.
func (w workload) run() (int, error) {
	if w.deaf {
		signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	}
	witness, err := fleet.NewTeller(w.witness)
	if err != nil {
		return 0, err
	}
	if err := witness.Create(w.attempt + transcriptSuffix); err != nil {
		return 0, err // an attempt that starts twice fails here
	}
	beat := w.beat(witness)

	random := rand.New(rand.NewPCG(uint64(w.lines), uint64(len(w.attempt))))
	pause := w.lasts / time.Duration(max(w.lines, 1))
	for i := range w.lines {
		line := fmt.Appendf(nil, "%s %d %x\n", w.attempt, i, random.Uint64())
		if err := witness.Append(w.attempt+transcriptSuffix, line); err != nil { // first: what is in the log must be in here
			return 0, err
		}
		if _, err := os.Stdout.Write(line); err != nil {
			return 0, err
		}
		for end := clock.Boot().Add(pause); ; {
			if err := beat(); err != nil {
				return 0, err
			}
			left := end.Sub(clock.Boot())
			if left <= 0 {
				break
			}
			time.Sleep(min(left, beatEvery))
		}
	}
	if err := leave(w.attempt); err != nil {
		return 0, err
	}
	return w.exit, beat()
}

// beat returns a function that notes the present instant as the last one.
func (w workload) beat(witness *fleet.Teller) func() error {
	first := clock.Boot()
	return func() error {
		var both [16]byte
		binary.LittleEndian.PutUint64(both[:8], uint64(first))
		binary.LittleEndian.PutUint64(both[8:], uint64(clock.Boot()))
		return witness.Put(w.attempt+aliveSuffix, both[:])
	}
}
