package confine_test

import (
	"strings"
	"testing"
)

func TestAStepHasNoCapabilitiesAndCannotGainAny(t *testing.T) {
	kinds(t, func(t *testing.T, mapped bool) {
		got := shell(t, mapped, `grep -E '^(Cap|NoNew|Seccomp:)' /proc/self/status | tr '\t' ' '`)
		none := "0000000000000000\n"
		want := "CapInh: " + none + "CapPrm: " + none + "CapEff: " + none + "CapBnd: " + none + "CapAmb: " + none +
			"NoNewPrivs: 1\nSeccomp: 2\n"
		if got != want {
			t.Errorf("a step has\n%swant\n%s", got, want)
		}
	})
}

func TestPidOneKeepsWhatItNeedsToKeepSteps(t *testing.T) {
	kinds(t, func(t *testing.T, mapped bool) {
		got, err := behind(t, "pid 1", mapped)
		if err != nil {
			t.Fatal(err, got)
		}
		want := "CapEff:\t0000000000000000\n"
		if mapped {
			want = "CapEff:\t00000000000000e0\n" // SETUID SETGID KILL
		}
		if !strings.Contains(got, want) || !strings.Contains(got, "CapBnd:\t0000000000000000\n") || !strings.Contains(got, "Seccomp:\t2\n") {
			t.Errorf("pid 1 has\n%s", got)
		}
	})
}
