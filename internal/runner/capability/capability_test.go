package capability

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// box is an executor of which only the kind matters here.
type box struct{ executor.Executor }

func (box) Sandbox() forge.Sandbox { return forge.Sandbox{Kind: forge.SandboxProcess} }

func host() *Host {
	return &Host{
		Executors: []executor.Executor{box{}}, Labels: []string{"site-b", "site-a", "site-b"}, Slots: 2,
		Disk: func() (forge.Bytes, forge.Bytes, error) { return 50 * forge.GiB, 100 * forge.GiB, nil },
	}
}

func TestTheSnapshotIsThatOfThisMachineAndValid(t *testing.T) {
	c, err := host().Capabilities(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Validate(); err != nil {
		t.Fatalf("the snapshot is not valid: %v", err)
	}
	if c.Platform.OS != runtime.GOOS || c.Platform.Arch != runtime.GOARCH {
		t.Errorf("platform %+v", c.Platform)
	}
	if c.Resources.CPU != forge.MilliCPU(runtime.NumCPU())*1000 || c.Resources.Memory < 64*forge.MiB || c.Resources.Disk != 100*forge.GiB {
		t.Errorf("resources %+v", c.Resources)
	}
	if len(c.Sandboxes) != 1 || len(c.Labels) != 2 {
		t.Errorf("sandboxes %v, labels %v", c.Sandboxes, c.Labels)
	}
	found := false
	for _, chain := range c.Toolchains {
		found = found || chain.ID == "go" && strings.Contains(chain.Version, ".") && chain.Source == forge.ToolchainHost
	}
	if !found {
		t.Errorf("the Go that runs this test is not among %v", c.Toolchains)
	}
}

func TestTwoProbesOfOneMachineHaveOneDigest(t *testing.T) {
	quick, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Dir(quick)) // whoever is slow to say its version, a shim say, may be left out of one
	a, _ := host().Capabilities(t.Context())
	b, _ := host().Capabilities(t.Context())
	if a.Digest() != b.Digest() {
		t.Errorf("two probes differ:\n%+v\n%+v", a, b)
	}
}

func TestAProbeThatIsToEndDoesNotHang(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if c, err := host().Capabilities(ctx); err != nil || len(c.Toolchains) != 0 {
		t.Errorf("%v, %v", c.Toolchains, err)
	}
}

func TestFreeIsWhatReserveAndJobsLeaveAndTheDiskReallyHas(t *testing.T) {
	total := forge.Resources{CPU: 8000, Memory: 16 * forge.GiB, Disk: 100 * forge.GiB, Slots: 4}
	reserve := forge.Resources{CPU: 1000, Memory: forge.GiB, Disk: 5 * forge.GiB}
	active := forge.Resources{CPU: 2000, Memory: 4 * forge.GiB, Disk: 10 * forge.GiB, Slots: 1}
	for what, test := range map[string]struct {
		now  Reading
		want forge.Resources
	}{
		"an idle disk": {
			Reading{Disk: 99 * forge.GiB, Pressure: forge.PressureNormal},
			forge.Resources{CPU: 5000, Memory: 11 * forge.GiB, Disk: 85 * forge.GiB, Slots: 3},
		},
		"a disk that others fill": {
			Reading{Disk: 20 * forge.GiB, Pressure: forge.PressureNormal},
			forge.Resources{CPU: 5000, Memory: 11 * forge.GiB, Disk: 15 * forge.GiB, Slots: 3},
		},
		"a full disk": {
			Reading{Disk: forge.GiB, Pressure: forge.PressureDisk},
			forge.Resources{CPU: 5000, Memory: 11 * forge.GiB, Slots: 3},
		},
		"critical pressure": {Reading{Disk: 99 * forge.GiB, Pressure: forge.PressureCritical}, forge.Resources{}},
	} {
		s := Summary(total, reserve, active, test.now)
		if s.Free != test.want {
			t.Errorf("%s: free %v, want %v", what, s.Free, test.want)
		}
		if err := s.Validate(); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAMachineIsShortOfTheWorstThingFirst(t *testing.T) {
	good := memory{total: 16 * forge.GiB, available: 8 * forge.GiB}
	for what, test := range map[string]struct {
		stalls stalls
		memory memory
		disk   forge.Bytes
		want   forge.ResourcePressure
	}{
		"nothing":                 {stalls{}, good, 50 * forge.GiB, forge.PressureNormal},
		"busy processors":         {stalls{cpuSome: 90}, good, 50 * forge.GiB, forge.PressureNormal},
		"processors":              {stalls{cpuSome: 98}, good, 50 * forge.GiB, forge.PressureCPU},
		"memory that is waited":   {stalls{memorySome: 30}, good, 50 * forge.GiB, forge.PressureMemory},
		"memory that is used":     {stalls{}, memory{16 * forge.GiB, 700 * forge.MiB}, 50 * forge.GiB, forge.PressureMemory},
		"memory that is gone":     {stalls{}, memory{16 * forge.GiB, 100 * forge.MiB}, 50 * forge.GiB, forge.PressureCritical},
		"a machine that stands":   {stalls{memoryFull: 40}, good, 50 * forge.GiB, forge.PressureCritical},
		"a full disk":             {stalls{memorySome: 30}, good, 100 * forge.MiB, forge.PressureDisk},
		"a kernel that is silent": {stalls{}, memory{}, 50 * forge.GiB, forge.PressureNormal},
	} {
		if got := pressureOf(test.stalls, test.memory, test.disk, 100*forge.GiB); got != test.want {
			t.Errorf("%s: %v, want %v", what, got, test.want)
		}
	}
}

func TestWhatTheKernelSaysIsRead(t *testing.T) {
	const psi = "some avg10=12.34 avg60=8.06 avg300=17.36 total=3621686658\nfull avg10=1.50 avg60=0.00 avg300=0.00 total=0\n"
	if parseStall(psi, "some") != 12.34 || parseStall(psi, "full") != 1.5 || parseStall("", "some") != 0 || parseStall("some\nsome x=1\n", "some") != 0 {
		t.Error("a line of PSI is misread")
	}
	const info = "MemTotal:       24576 kB\nMemAvailable:   512 kB\nMemFree:\nHuge:  99999999999999999999 kB\n"
	if parseMeminfo(info, "MemTotal") != 24*forge.MiB || parseMeminfo(info, "MemAvailable") != 512*forge.KiB ||
		parseMeminfo(info, "MemFree") != 0 || parseMeminfo(info, "Huge") != 0 || parseMeminfo(info, "Mem") != 0 {
		t.Error("a line of meminfo is misread")
	}
}

// TestHealthNamesWhatIsWrongAndSumsUp holds 07§123–126 for what an agent sees of itself. T07, B32.
func TestHealthNamesWhatIsWrongAndSumsUp(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	good := Facts{
		Reading: Reading{Disk: 50 * forge.GiB, DiskAll: 100 * forge.GiB}, Sandboxes: []forge.Sandbox{{Kind: forge.SandboxProcess}},
		Now: now, SkewKnown: true, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(29 * 24 * time.Hour),
	}
	for what, test := range map[string]struct {
		edit func(*Facts)
		kind forge.HealthCheckKind
		want forge.HealthStatus
		word string
	}{
		"nothing":           {func(*Facts) {}, forge.CheckDiskSpace, forge.Healthy, "50 GiB"},
		"little disk":       {func(f *Facts) { f.Reading.Disk = forge.GiB }, forge.CheckDiskSpace, forge.Degraded, "1024 MiB"},
		"no disk":           {func(f *Facts) { f.Reading.Disk = forge.MiB }, forge.CheckDiskSpace, forge.Unhealthy, "1 MiB"},
		"an unseen disk":    {func(f *Facts) { f.Reading.DiskErr = errors.New("gone") }, forge.CheckDiskSpace, forge.Unhealthy, "gone"},
		"a stuck workspace": {func(f *Facts) { f.CleanUp = errors.New("x is stuck") }, forge.CheckDiskSpace, forge.Degraded, "stuck"},
		"no executor":       {func(f *Facts) { f.Sandboxes = nil }, forge.CheckSandbox, forge.Unhealthy, "nothing here"},
		"a broken executor": {func(f *Facts) { f.Executor = errors.New("no fork\nline two") }, forge.CheckExecutor, forge.Degraded, "no fork"},
		"a clock ahead":     {func(f *Facts) { f.Skew = 20 * time.Minute }, forge.CheckClock, forge.Degraded, "20m0s ahead of"},
		"a clock behind":    {func(f *Facts) { f.Skew = -time.Minute }, forge.CheckClock, forge.Degraded, "1m0s behind"},
		"a young certificate": {
			func(f *Facts) { f.NotBefore = now.Add(17 * time.Minute) }, forge.CheckClock, forge.Degraded, "17m0s behind",
		},
		"an old certificate":    {func(f *Facts) { f.NotAfter = now.Add(-time.Hour) }, forge.CheckCredential, forge.Unhealthy, "1h0m0s ago"},
		"an ageing certificate": {func(f *Facts) { f.NotBefore, f.NotAfter = now.Add(-29*24*time.Hour), now.Add(24*time.Hour) }, forge.CheckCredential, forge.Degraded, "24h"},
		"no certificate":        {func(f *Facts) { f.NotAfter = time.Time{} }, forge.CheckCredential, forge.Unhealthy, "enrol"},
	} {
		t.Run(what, func(t *testing.T) {
			facts := good
			test.edit(&facts)
			h := Check(facts, nil)
			if err := h.Validate(); err != nil {
				t.Fatalf("the report is not valid: %v", err)
			}
			if h.Status != test.want {
				t.Errorf("the runner is %v, want %v", h.Status, test.want)
			}
			for _, c := range h.Checks {
				if c.Kind == test.kind && (c.Status != test.want || !strings.Contains(c.Detail, test.word)) {
					t.Errorf("%v: %v, %q", c.Kind, c.Status, c.Detail)
				}
			}
		})
	}
}

func TestOnlyTheChecksThatWereAskedForAreRun(t *testing.T) {
	h := Check(Facts{}, []forge.HealthCheckKind{forge.CheckClock})
	if len(h.Checks) != 1 || h.Checks[0].Kind != forge.CheckClock {
		t.Errorf("checks %v", h.Checks)
	}
}
