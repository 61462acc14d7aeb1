package forge_test

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func anyResources(t *rapid.T, label string) forge.Resources {
	return forge.Resources{
		CPU: forge.MilliCPU(rapid.Uint64().Draw(t, label+" cpu")), Memory: forge.Bytes(rapid.Uint64().Draw(t, label+" memory")),
		Disk: forge.Bytes(rapid.Uint64().Draw(t, label+" disk")), Slots: rapid.Uint32().Draw(t, label+" slots"),
	}
}

func TestWhatIsAddedCanBeTakenAwayAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyResources(t, "a"), anyResources(t, "b")
		sum, err := a.Add(b)
		if err != nil {
			if !errors.Is(err, forge.ErrOverflow) {
				t.Fatal(err)
			}
			return
		}
		if !a.Fits(sum) || !b.Fits(sum) {
			t.Fatalf("%v + %v = %v does not hold its parts", a, b, sum)
		}
		if back, err := sum.Sub(b); err != nil || back != a {
			t.Fatalf("%v − %v = %v, %v", sum, b, back, err)
		}
	})
}

func TestTakingMoreThanThereIsFailsOrLeavesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := anyResources(t, "a"), anyResources(t, "b")
		diff, err := a.Sub(b)
		if fits := b.Fits(a); fits != (err == nil) || err != nil && !errors.Is(err, forge.ErrInsufficient) {
			t.Fatalf("%v − %v = %v, %v", a, b, diff, err)
		}
		left := a.Without(b)
		if !left.Fits(a) || err == nil && left != diff {
			t.Fatalf("%v without %v leaves %v", a, b, left)
		}
	})
}

func TestOverflowOfAnyAmountIsAnError(t *testing.T) {
	one := forge.Resources{CPU: 1, Memory: 1, Disk: 1, Slots: 1}
	for _, most := range []forge.Resources{{CPU: math.MaxUint64}, {Memory: math.MaxUint64}, {Disk: math.MaxUint64}, {Slots: math.MaxUint32}} {
		if sum, err := most.Add(one); !errors.Is(err, forge.ErrOverflow) {
			t.Errorf("%v, %v", sum, err)
		}
	}
}

func TestAJobFitsOnlyIfEveryAmountDoes(t *testing.T) {
	free := forge.Resources{CPU: 10, Memory: 10, Disk: 10, Slots: 10}
	if !free.Fits(free) {
		t.Error("what is there does not fit")
	}
	for _, r := range []forge.Resources{{CPU: 11}, {Memory: 11}, {Disk: 11}, {Slots: 11}} {
		if r.Fits(free) {
			t.Errorf("%v fits %v", r, free)
		}
	}
}

func TestAllocatableIsWhatAllReservesAndJobsLeave(t *testing.T) {
	physical := forge.Resources{CPU: 8000, Memory: 32 * forge.GiB, Disk: 100 * forge.GiB, Slots: 4}
	got := forge.Allocatable(physical,
		forge.Resources{CPU: 500, Memory: forge.GiB},
		forge.Resources{CPU: 2000, Memory: 8 * forge.GiB},
		forge.Resources{CPU: 1500, Memory: 3 * forge.GiB, Disk: 10 * forge.GiB, Slots: 1})
	if want := (forge.Resources{CPU: 4000, Memory: 20 * forge.GiB, Disk: 90 * forge.GiB, Slots: 3}); got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := forge.Allocatable(physical, physical, physical, physical); got != (forge.Resources{}) {
		t.Errorf("a reserve larger than the machine leaves %v", got)
	}
}

func TestResourceBoundsHoldAtThemAndNotOnePastThem(t *testing.T) {
	most := forge.Resources{CPU: forge.MaxCPU, Memory: forge.MaxMemory, Disk: forge.MaxDisk, Slots: forge.MaxSlots}
	if err := most.Validate(); err != nil {
		t.Error(err)
	}
	past := forge.Resources{CPU: most.CPU + 1, Memory: most.Memory + 1, Disk: most.Disk + 1, Slots: most.Slots + 1}
	if diff := cmp.Diff([]string{"cpu", "memory", "disk", "slots"}, paths(t, past.Validate())); diff != "" {
		t.Error(diff)
	}
}

func TestAmountsAreWrittenForPeople(t *testing.T) {
	for got, want := range map[string]string{
		forge.MilliCPU(1500).String():      "1.5",
		forge.MilliCPU(64000).String():     "64",
		forge.Bytes(0).String():            "0 B",
		forge.Bytes(1023).String():         "1023 B",
		(64 * forge.GiB).String():          "64 GiB",
		(1536 * forge.MiB).String():        "1536 MiB",
		(2 * forge.TiB).String():           "2 TiB",
		forge.Resources{CPU: 250}.String(): "0.25 cpu, 0 B memory, 0 B disk, 0 slots",
		forge.PressureNormal.String():      "Normal",
		forge.PressureCritical.String():    "Critical",
		forge.ResourcePressure(7).String(): "invalid(7)",
		forge.CheckCredential.String():     "Credential",
		forge.HealthStatus(4).String():     "invalid(4)",
		forge.TrustProtected.String():      "protected",
		forge.SandboxNative.String():       "native",
		forge.ToolchainHost.String():       "host",
		forge.OfflineAuthorized.String():   "offline",
		forge.LevelWarning.String():        "warning",
		forge.InputCopyOnWrite.String():    "cow",
		forge.WhenNever.String():           "never",
		forge.NetworkHost.String():         "host",
		forge.LogStructured.String():       "structured",
		forge.Connectivity(0).String():     "invalid(0)",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestASummaryOffersNoMoreThanIsLeft(t *testing.T) {
	good := forge.ResourceSummary{
		Total:    forge.Resources{CPU: 8000, Memory: 8 * forge.GiB, Disk: 8 * forge.GiB, Slots: 4},
		Reserved: forge.Resources{CPU: 1000}, Active: forge.Resources{CPU: 2000, Slots: 1},
		Free:     forge.Resources{CPU: 5000, Memory: 8 * forge.GiB, Disk: 8 * forge.GiB, Slots: 3},
		Pressure: forge.PressureNormal,
	}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	less := good
	less.Free, less.Pressure = forge.Resources{}, forge.PressureMemory
	if err := less.Validate(); err != nil {
		t.Errorf("an agent that offers less: %v", err)
	}
	for _, test := range []struct {
		path  string
		spoil func(*forge.ResourceSummary)
	}{
		{"total.cpu", func(s *forge.ResourceSummary) { s.Total.CPU = forge.MaxCPU + 1 }},
		{"free", func(s *forge.ResourceSummary) { s.Free.CPU++ }},
		{"pressure", func(s *forge.ResourceSummary) { s.Pressure = 0 }},
		{"pressure", func(s *forge.ResourceSummary) { s.Pressure = 7 }},
	} {
		s := good
		test.spoil(&s)
		if diff := cmp.Diff([]string{test.path}, paths(t, s.Validate())); diff != "" {
			t.Error(diff)
		}
	}
}

func TestHealthIsThatOfTheWorstCheckAndEachCheckIsThereOnce(t *testing.T) {
	checks := []forge.HealthCheck{
		{Kind: forge.CheckDiskSpace, Status: forge.Healthy}, {Kind: forge.CheckClock, Status: forge.Degraded, Detail: "2 s off"},
	}
	h := forge.HealthOf(checks)
	if err := h.Validate(); err != nil || h.Status != forge.Degraded {
		t.Errorf("%v, %v", h.Status, err)
	}
	if h := forge.HealthOf([]forge.HealthCheck{checks[1], checks[0]}); h.Status != forge.Degraded {
		t.Errorf("a good check after a bad one makes it %v", h.Status)
	}
	if err := forge.HealthOf(nil).Validate(); err != nil {
		t.Error(err)
	}
	for _, test := range []struct {
		path string
		h    forge.Health
	}{
		{"status", forge.Health{Status: forge.Healthy, Checks: checks}},
		{"checks[1]", forge.HealthOf([]forge.HealthCheck{checks[0], checks[0]})},
		{"checks[0].kind", forge.HealthOf([]forge.HealthCheck{{Kind: 9, Status: forge.Healthy}})},
		{"checks[0].detail", forge.HealthOf([]forge.HealthCheck{{Kind: 1, Status: forge.Healthy, Detail: "a\nb"}})},
	} {
		if diff := cmp.Diff([]string{test.path}, paths(t, test.h.Validate())); diff != "" {
			t.Error(diff)
		}
	}
}
