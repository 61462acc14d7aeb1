package confine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
)

func TestNothingIsConfinedOutsideOfASandbox(t *testing.T) {
	if _, err := confine.Prepare(confine.DefaultWalls(true)); !errors.Is(err, confine.ErrNotInside) {
		t.Errorf("Prepare: %v", err)
	}
	if err := confine.Apply(confine.DefaultWalls(true)); !errors.Is(err, confine.ErrNotInside) {
		t.Errorf("Apply: %v", err)
	}
}

func TestLimitsAreTheSameForEveryAttempt(t *testing.T) {
	kinds(t, func(t *testing.T, mapped bool) {
		got := shell(t, mapped, `ulimit -Sc; ulimit -Hc; ulimit -Sn; ulimit -Ss; ulimit -Sl; ulimit -Hl; ulimit -r`)
		if want := "0\n0\n1024\n8192\n8192\n8192\n0\n"; got != want {
			t.Errorf("limits\n%swant\n%s", got, want)
		}
	})
}

func TestLandlockForbidsWhatOwnersAndModesAllow(t *testing.T) {
	if !has(t, confine.FeatureLandlock) {
		t.Skip("this kernel has no Landlock")
	}
	kinds(t, func(t *testing.T, mapped bool) {
		// The file is the process's own, on a mount that can be written to.
		got := shell(t, mapped, `(echo x > /proc/self/comm) 2>&1 || true; echo x > /work/f && mkdir /work/d && ln /work/f /work/d/g && mv /work/d/g /work/g && cat /work/g`)
		if !strings.Contains(got, "Permission denied") || !strings.HasSuffix(got, "\nx\n") {
			t.Errorf("printed %q", got)
		}
	})
}

func TestTheFilterIsOnEveryStep(t *testing.T) {
	kinds(t, func(t *testing.T, mapped bool) {
		got := shell(t, mapped, `unshare -U true 2>&1 || true; unshare -n true 2>&1 || true; dmesg 2>&1 | tail -1; chroot / true 2>&1 || true; hostname x 2>&1 || true`)
		if n := strings.Count(got, "Operation not permitted") + strings.Count(got, "you must be root"); n != 5 {
			t.Errorf("%d of 5 were refused:\n%s", n, got)
		}
	})
}

func has(t *testing.T, feature string) bool {
	t.Helper()
	for _, f := range confine.Probe() {
		if f.Name == feature {
			return f.Have
		}
	}
	t.Fatalf("Probe says nothing of %s", feature)
	return false
}

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
		if !strings.Contains(got, want) || !strings.Contains(got, "CapBnd:\t0000000000000000\n") || !strings.Contains(got, "Seccomp:\t2\n") ||
			!strings.Contains(got, "token 400 1000:1000\n") {
			t.Errorf("pid 1 has\n%s", got)
		}
	})
}
