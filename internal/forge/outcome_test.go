package forge_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// The numbers are stored and travel. A line may be added at the end; none may change.
var frozenClasses = []string{
	"1 Succeeded fault=1 retry=1 exit=0 attempt=Succeeded",
	"2 ExitCode fault=2 retry=2 exit=1 attempt=Failed",
	"3 Signal fault=2 retry=3 exit=1 attempt=Failed",
	"4 TimedOut fault=2 retry=4 exit=1 attempt=Failed",
	"5 OutOfMemory fault=2 retry=5 exit=1 attempt=Failed",
	"6 PidsExhausted fault=2 retry=1 exit=1 attempt=Failed",
	"7 DiskFull fault=2 retry=1 exit=1 attempt=Failed",
	"8 OutputMissing fault=2 retry=1 exit=1 attempt=Failed",
	"9 OutputTooLarge fault=2 retry=1 exit=1 attempt=Failed",
	"10 OutputRefused fault=2 retry=1 exit=1 attempt=Failed",
	"11 Cancelled fault=4 retry=1 exit=2 attempt=Cancelled",
	"12 InputFetch fault=3 retry=6 exit=3 attempt=Failed",
	"13 CorruptInput fault=3 retry=6 exit=3 attempt=Failed",
	"14 DiskInsufficient fault=3 retry=6 exit=3 attempt=Failed",
	"15 PathIncompatible fault=2 retry=1 exit=1 attempt=Failed",
	"16 SandboxSetup fault=3 retry=6 exit=3 attempt=Failed",
	"17 UploadFailed fault=3 retry=6 exit=3 attempt=Failed",
	"18 Interrupted fault=3 retry=6 exit=3 attempt=Failed",
	"19 Lost fault=3 retry=6 exit=3 attempt=Lost",
}

func TestClassesKeepTheirNumbersAndConsequences(t *testing.T) {
	var got []string
	for _, c := range forge.Classes() {
		got = append(got, fmt.Sprintf("%d %v fault=%d retry=%d exit=%d attempt=%v",
			uint8(c), c, c.Fault(), c.Retry(), c.ExitCode(), c.AttemptState()))
	}
	if diff := cmp.Diff(frozenClasses, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryFaultHasItsExitCodeAndInfrastructureItsOwnBudget(t *testing.T) {
	exit := []int{forge.FaultNone: 0, forge.FaultUser: 1, forge.FaultCancelled: 2, forge.FaultInfrastructure: 3}
	for _, c := range forge.Classes() {
		if c.ExitCode() != exit[c.Fault()] {
			t.Errorf("%v: exit code %d for fault %d", c, c.ExitCode(), c.Fault())
		}
		if ours := c.Fault() == forge.FaultInfrastructure; ours != (c.Retry() == forge.RetryInfra) {
			t.Errorf("%v: fault %d draws on budget %d", c, c.Fault(), c.Retry())
		}
		if !c.AttemptState().Ended() {
			t.Errorf("%v leaves its attempt %v", c, c.AttemptState())
		}
	}
}

func TestAnUnknownClassIsOurFaultAndIsNotTriedAgain(t *testing.T) {
	for _, c := range []forge.Class{0, forge.Unplanned + 1, 255} {
		if c.Valid() || c.Fault() != forge.FaultInfrastructure || c.Retry() != forge.RetryNever || c.ExitCode() != 3 {
			t.Errorf("%v: valid %v, fault %d, retry %d, exit %d", c, c.Valid(), c.Fault(), c.Retry(), c.ExitCode())
		}
	}
}

func TestRetryWordsCoverWhatTheyNameAndNeverInfrastructure(t *testing.T) {
	all := forge.RetryPolicy{
		Max: 1, On: []forge.RetryWord{forge.RetryExit, forge.RetrySignal, forge.RetryTimeout, forge.RetryOOM},
	}
	for _, c := range forge.Classes() {
		want := c == forge.ExitCode || c == forge.Signal || c == forge.TimedOut || c == forge.OutOfMemory
		if got := all.Covers(c, 1); got != want {
			t.Errorf("%v is covered: %v", c, got)
		}
		if (forge.RetryPolicy{Max: 1}).Covers(c, 1) {
			t.Errorf("%v is covered by no word", c)
		}
	}
	codes := forge.RetryPolicy{Max: 1, On: []forge.RetryWord{forge.RetryExit}, ExitCodes: []uint8{137}}
	if !codes.Covers(forge.ExitCode, 137) || codes.Covers(forge.ExitCode, 1) {
		t.Error("exit codes do not narrow the word exit")
	}
}

func TestAllowFailureIsForTheAuthorsFaultsOnly(t *testing.T) {
	anything, some := forge.AllowFailure{Any: true}, forge.AllowFailure{ExitCodes: []uint8{42}}
	for _, c := range forge.Classes() {
		if got, want := anything.Allows(c, 1), c.Fault() == forge.FaultUser; got != want {
			t.Errorf("any allows %v: %v", c, got)
		}
		if got, want := some.Allows(c, 42), c == forge.ExitCode; got != want {
			t.Errorf("exit code 42 allows %v: %v", c, got)
		}
	}
	if some.Allows(forge.ExitCode, 41) || (forge.AllowFailure{}).Allows(forge.ExitCode, 42) {
		t.Error("an exit code that is not listed is allowed")
	}
}
