//go:build linux

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// observedJob is what is known of a job at the end of a run: from the daemon's interface, and from the files that the
// workloads themselves have left.
type observedJob struct {
	name      string
	ended     bool
	succeeded bool
	cancelled bool          // a user asked for its end
	cancelAt  forge.Instant // when the daemon had said that it knew
	attempts  []observedAttempt
	artifacts []observedArtifact
	sum       string // of its source
}

// observedAttempt is one try.
type observedAttempt struct {
	id         string
	number     int
	ended      bool
	accepted   bool // the daemon has recorded its result
	cut        bool // its workload did not end by itself
	decided    bool // that result ended the job: it is not one of ours that is tried again
	lost       bool
	logSealed  bool
	log        []byte // as stored by the daemon
	started    bool   // its workload ran
	transcript []byte // what that says that it wrote
	first      forge.Instant
	last       forge.Instant
}

// violation is a broken invariant, named as in the list of docs/testing.md.
type violation struct {
	invariant string
	what      string
}

func (v violation) String() string { return v.invariant + ": " + v.what }

// check holds what was observed against the invariants that one can see from outside.
func check(jobs []observedJob) []violation {
	var found []violation
	for _, j := range jobs {
		found = append(found, checkJob(j)...)
	}
	return found
}

func checkJob(j observedJob) []violation {
	var found []violation
	report := func(invariant, format string, args ...any) {
		found = append(found, violation{invariant, fmt.Sprintf("job %s: ", j.name) + fmt.Sprintf(format, args...)})
	}
	if !j.ended {
		report("I07", "never ended")
	}
	decided := 0
	for _, a := range j.attempts {
		if a.decided {
			decided++
		}
		if !a.ended {
			report("I07", "attempt %d never ended", a.number)
		}
		checkLog(a, report)
	}
	if decided > 1 {
		report("I03", "the results of %d attempts were recorded", decided)
	}
	if j.succeeded && decided == 0 {
		report("I03", "it succeeded and no attempt's result was recorded")
	}
	checkAlone(j, report)
	checkBytes(j, report)
	checkCancel(j, report)
	return found
}

// checkLog compares the stored log with the workload's own transcript: equal where the result was recorded, its beginning
// where the attempt was lost on the way (I08). A workload that was killed may have told its witness of a line that it did not
// come to print.
func checkLog(a observedAttempt, report func(string, string, ...any)) {
	if rest, ok := bytes.CutPrefix(a.transcript, a.log); ok && a.cut && bytes.Count(rest, []byte("\n")) <= 1 {
		a.transcript = a.log
	}
	switch {
	case a.accepted && !bytes.Equal(a.log, a.transcript):
		report("I08", "attempt %d was accepted, its log has %d bytes and its transcript %d, alike up to byte %d",
			a.number, len(a.log), len(a.transcript), common(a.log, a.transcript))
	case a.accepted && !a.logSealed:
		report("I08", "attempt %d was accepted and its log is not sealed", a.number)
	case !bytes.HasPrefix(a.transcript, a.log):
		report("I08", "attempt %d has a log of %d bytes that its transcript of %d does not begin with, alike up to byte %d",
			a.number, len(a.log), len(a.transcript), common(a.log, a.transcript))
	}
}

// checkAlone looks for two attempts of one job whose workloads were alive at the same time (I01, I02). All of them ran on
// this machine, so their instants compare.
func checkAlone(j observedJob, report func(string, string, ...any)) {
	ran := slices.DeleteFunc(slices.Clone(j.attempts), func(a observedAttempt) bool { return !a.started })
	slices.SortFunc(ran, func(a, b observedAttempt) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(ran); i++ {
		if before, after := ran[i-1], ran[i]; after.first <= before.last {
			report("I01", "attempt %d began %v before attempt %d was seen alive for the last time",
				after.number, before.last.Sub(after.first).Round(time.Millisecond), before.number)
		}
	}
}

// checkCancel: what begins after the daemon knew of a cancel was never allowed to.
func checkCancel(j observedJob, report func(string, string, ...any)) {
	if !j.cancelled {
		return
	}
	// An agent that had its grant before the cancel may still be on its way to the start.
	const onTheWay = 5 * time.Second
	for _, a := range j.attempts {
		if a.started && a.first > j.cancelAt.Add(onTheWay) {
			report("cancel", "attempt %d began %v after the cancel", a.number, a.first.Sub(j.cancelAt).Round(time.Millisecond))
		}
	}
}

// common returns how many bytes two texts share at their beginning.
func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
