package scheduler_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/daemon/scheduler"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// placed writes job→runner in the order of the plan.
func placed(p *scheduler.Plan) []string {
	var all []string
	for _, one := range p.Placements {
		all = append(all, fmt.Sprintf("%d→r%d", one.Job.ULID[15], one.Runner.ULID[15]))
	}
	return all
}

func check(t *testing.T, what string, s scheduler.Snapshot, want ...string) *scheduler.Plan {
	t.Helper()
	plan := scheduler.Place(s)
	if diff := cmp.Diff(want, placed(plan)); diff != "" {
		t.Errorf("%s: %s", what, diff)
	}
	return plan
}

func TestARunnerThatMayNotOrCannotIsPassedOver(t *testing.T) {
	for _, test := range []struct {
		why    string
		change func(*scheduler.Runner, *scheduler.Job)
	}{
		{"not connected", func(r *scheduler.Runner, _ *scheduler.Job) { r.Connected = false }},
		{"disabled", func(r *scheduler.Runner, _ *scheduler.Job) { r.Disabled = true }},
		{"draining", func(r *scheduler.Runner, _ *scheduler.Job) { r.Draining = true }},
		{"unhealthy", func(r *scheduler.Runner, _ *scheduler.Job) { r.Health = forge.Unhealthy }},
		{"under pressure: Disk", func(r *scheduler.Runner, _ *scheduler.Job) { r.Summary.Pressure = forge.PressureDisk }},
		{"pool is default, not gold", func(_ *scheduler.Runner, j *scheduler.Job) { j.Need.Constraints.Pool = "gold" }},
		{"trust is trusted, not protected", func(_ *scheduler.Runner, j *scheduler.Job) { j.Need.Constraints.Trust = forge.TrustProtected }},
		{"trust is protected, not trusted", func(r *scheduler.Runner, _ *scheduler.Job) { r.Trust = forge.TrustProtected }},
		{"os is linux, not windows", func(_ *scheduler.Runner, j *scheduler.Job) { j.Need.Constraints.OS = "windows" }},
		{"arch is amd64, not arm64", func(_ *scheduler.Runner, j *scheduler.Job) { j.Need.Constraints.Arch = "arm64" }},
		{"sandbox native missing", func(r *scheduler.Runner, _ *scheduler.Job) { r.Capabilities.Sandboxes = nil }},
		{"label gpu missing", func(_ *scheduler.Runner, j *scheduler.Job) { j.Need.Constraints.Labels = []string{"gpu"} }},
		{"device gpu 1 > 0", func(_ *scheduler.Runner, j *scheduler.Job) {
			j.Need.Constraints.Devices = []forge.DeviceCount{{Kind: "gpu", Count: 1}}
		}},
		{"toolchain go 1.26 missing", func(_ *scheduler.Runner, j *scheduler.Job) {
			j.Need.Constraints.Toolchains = []forge.ToolchainNeed{{ID: "go", Version: "1.26"}}
		}},
		{"feature network.host missing", func(_ *scheduler.Runner, j *scheduler.Job) { j.Need.Features = []string{forge.FeatureHostNetwork} }},
		{"memory 64 GiB > 4 GiB", func(_ *scheduler.Runner, j *scheduler.Job) { j.Need.Resources.Memory = 64 * forge.GiB }},
		{"memory 3 GiB > 2 GiB", func(r *scheduler.Runner, j *scheduler.Job) {
			r.Reserved.Memory, j.Need.Resources.Memory = 2*forge.GiB, 3*forge.GiB
		}},
		{"memory 3 GiB > 2 GiB", func(r *scheduler.Runner, j *scheduler.Job) {
			r.Summary.Reserved.Memory, j.Need.Resources.Memory = 2*forge.GiB, 3*forge.GiB
		}},
		{"memory 3 GiB > 2 GiB", func(r *scheduler.Runner, j *scheduler.Job) { // the agent offers 2 GiB less than it could
			r.Summary = forge.ResourceSummary{Total: box(4), Active: box(1), Free: box(3), Pressure: forge.PressureNormal}
			r.Summary.Free.Memory, j.Need.Resources.Memory = forge.GiB, 3*forge.GiB
		}},
		{"refused it before", func(r *scheduler.Runner, j *scheduler.Job) { j.Refused = []forge.RunnerID{r.ID} }},
		{"busy: cpu 1 > 0 free, busy: memory 1 GiB > 0 B free, busy: disk 1 GiB > 0 B free, busy: slots 1 > 0 free", func(r *scheduler.Runner, _ *scheduler.Job) {
			r.Open = []scheduler.Open{{Project: "p", Resources: box(4)}}
		}},
		{"busy: device gpu 1 > 0 free", func(r *scheduler.Runner, j *scheduler.Job) {
			gpu := []forge.DeviceCount{{Kind: "gpu", Count: 1}}
			r.Capabilities.Devices, j.Need.Constraints.Devices = gpu, gpu
			r.Open = []scheduler.Open{{Project: "p", Resources: box(1), Devices: gpu}}
		}},
		{"disabled, draining, label gpu missing", func(r *scheduler.Runner, j *scheduler.Job) {
			r.Disabled, r.Draining, j.Need.Constraints.Labels = true, true, []string{"gpu"}
		}},
	} {
		r, j := newRunner(1, 4), newJob(1, 1, "p")
		check(t, "before", scheduler.Snapshot{Jobs: []scheduler.Job{j}, Runners: []scheduler.Runner{r}}, "1→r1")
		test.change(&r, &j)
		plan := check(t, test.why, scheduler.Snapshot{Jobs: []scheduler.Job{j}, Runners: []scheduler.Runner{r}})
		if why, ok := plan.Why(j.ID); !ok || why.Passed[0].String() != "r1: "+test.why {
			t.Errorf("%+v, want %q", why, test.why)
		}
	}
}

func TestTrustAndPoolComeFromTheServerWhateverTheAgentSays(t *testing.T) {
	r, j := newRunner(1, 4), newJob(1, 1, "p")
	r.Trust = forge.TrustUntrusted
	for _, claim := range []string{"trust=trusted", "trusted", "protected", "pool=gold", "gold", "signing"} {
		r.Capabilities.Labels = append(r.Capabilities.Labels, claim)
		r.Capabilities.Features = append(r.Capabilities.Features, claim)
	}
	check(t, "trust", scheduler.Snapshot{Jobs: []scheduler.Job{j}, Runners: []scheduler.Runner{r}})
	r.Trust, j.Need.Constraints.Pool = forge.TrustTrusted, "gold"
	check(t, "pool", scheduler.Snapshot{Jobs: []scheduler.Job{j}, Runners: []scheduler.Runner{r}})
	r.Pool = "gold"
	check(t, "given by the server", scheduler.Snapshot{Jobs: []scheduler.Job{j}, Runners: []scheduler.Runner{r}}, "1→r1")
}

func TestAHealthyWarmAndIdleRunnerIsPreferredInThisOrder(t *testing.T) {
	tree := digest.Of([]byte("tree"))
	for _, test := range []struct {
		what string
		turn func(worse, better *scheduler.Runner)
	}{
		{"lower id", func(_, _ *scheduler.Runner) {}},
		{"idle", func(w, _ *scheduler.Runner) { w.Open = []scheduler.Open{{Project: "p", Resources: box(1)}} }},
		{"without a device that stands idle", func(w, b *scheduler.Runner) {
			w.Capabilities.Devices = []forge.DeviceCount{{Kind: "gpu", Count: 1}}
			b.Open = []scheduler.Open{{Project: "p", Resources: box(1)}}
		}},
		{"warm", func(_, b *scheduler.Runner) {
			b.Warm = []digest.Digest{digest.Of([]byte("other")), tree}
			b.Capabilities.Devices = []forge.DeviceCount{{Kind: "gpu", Count: 1}}
		}},
		{"with processor time to spare", func(w, b *scheduler.Runner) {
			w.Summary.Pressure, w.Warm = forge.PressureCPU, []digest.Digest{tree}
		}},
		{"healthy", func(w, b *scheduler.Runner) {
			b.Summary.Pressure = forge.PressureCPU
			w.Health, w.Warm = forge.Degraded, []digest.Digest{tree}
		}},
	} {
		worse, better := newRunner(2, 4), newRunner(3, 4)
		if test.what == "lower id" {
			worse, better = better, worse
		}
		test.turn(&worse, &better)
		j := newJob(1, 1, "p")
		j.Inputs = []digest.Digest{tree}
		check(t, test.what, scheduler.Snapshot{Jobs: []scheduler.Job{j}, Runners: []scheduler.Runner{worse, better}},
			fmt.Sprintf("1→%s", better.Name))
	}
}

func TestTheProjectWithTheLeastShareGoesFirstThenTheOlderJob(t *testing.T) {
	r := newRunner(1, 8)
	r.Open = []scheduler.Open{{Project: "busy", Resources: box(3)}}
	check(t, "five free of eight", scheduler.Snapshot{
		Runners: []scheduler.Runner{r},
		Jobs: []scheduler.Job{
			newJob(1, 1, "busy"), newJob(2, 1, "busy"), newJob(3, 1, "flood"), newJob(4, 1, "flood"), newJob(5, 1, "flood"),
			newJob(6, 1, "flood"), newJob(7, 1, "small"), newJob(8, 1, "small"),
		},
	}, "3→r1", "7→r1", "4→r1", "8→r1", "5→r1")
}

func TestALargeJobCountsAsLargeInItsProjectsShare(t *testing.T) {
	check(t, "one of three against three of one", scheduler.Snapshot{
		Runners: []scheduler.Runner{newRunner(1, 6)},
		Jobs:    []scheduler.Job{newJob(1, 3, "large"), newJob(2, 1, "large"), newJob(3, 1, "small"), newJob(4, 1, "small"), newJob(5, 1, "small")},
	}, "1→r1", "3→r1", "4→r1", "5→r1")
}

func TestARunnerIsHeldForTheOldestJobThatOnlyFitsAnEmptyOne(t *testing.T) {
	busy := func(n, used int) scheduler.Runner {
		r := newRunner(n, 4)
		r.Open = []scheduler.Open{{Project: "p", Resources: box(used)}}
		return r
	}
	plan := check(t, "r3 is nearest to being empty", scheduler.Snapshot{
		Runners: []scheduler.Runner{busy(1, 3), busy(2, 2), busy(3, 1)},
		Jobs: []scheduler.Job{
			newJob(1, 1, "q"), // older than the large one: may use what is held
			newJob(2, 4, "q"),
			newJob(3, 3, "q"), // fits r3, which is held: holds r2
			newJob(4, 1, "q"), newJob(5, 1, "q"),
		},
	}, "1→r3", "4→r1")
	if diff := cmp.Diff([]scheduler.Hold{{Job: jobID(2), Runner: runnerID(3)}, {Job: jobID(3), Runner: runnerID(2)}}, plan.Holds); diff != "" {
		t.Error(diff)
	}
	for id, want := range map[int]string{
		2: "runner r3 is held for it, busy: cpu 4 > 2 free on 3 runners",
		3: "runner r2 is held for it, busy: cpu 3 > 2 free on 3 runners",
		5: "held for older job " + jobID(3).String() + " on 1 runner, held for older job " + jobID(2).String() + " on 1 runner, busy: cpu 1 > 0 free on 1 runner",
	} {
		why, _ := plan.Why(jobID(id))
		if got := why.String(); got != want {
			t.Errorf("job %d: %q, want %q", id, got, want)
		}
	}
	runner, ok := plan.WhyRunner(runnerID(3))
	if !ok || runner.HeldFor != jobID(2) || runner.Free != box(2) || len(runner.Jobs) != 3 || runner.Jobs[0].Job != jobID(5) {
		t.Errorf("%+v", runner)
	}
}

// A stream of small jobs that never ends, from another project, younger than the large one.
func TestALargeJobIsNotStarvedByAStreamOfSmallOnes(t *testing.T) {
	const size, life = 8, 5
	type running struct {
		open   scheduler.Open
		runner int
		until  int
	}
	var active []running
	next := 2
	for round := range 100 {
		s := scheduler.Snapshot{Jobs: []scheduler.Job{newJob(1, size, "large")}}
		for n := range 3 {
			r := newRunner(n, size)
			for _, a := range active {
				if a.runner == n && a.until > round {
					r.Open = append(r.Open, a.open)
				}
			}
			s.Runners = append(s.Runners, r)
		}
		if round == 0 {
			s.Jobs = nil // the small ones were first
		}
		for range 3 * size {
			s.Jobs = append(s.Jobs, newJob(next, 1, "small"))
			next++
		}
		for i, p := range scheduler.Place(s).Placements {
			if p.Job == jobID(1) {
				t.Logf("placed in round %d", round)
				return
			}
			active = append(active, running{
				scheduler.Open{Project: "small", Resources: box(1)}, int(p.Runner.ULID[15]), round + 1 + (i+round)%life,
			})
		}
	}
	t.Error("the large job was never placed")
}

func TestEveryWaitingJobIsToldWhyTheNearestMissFirst(t *testing.T) {
	var s scheduler.Snapshot
	for n := range 6 {
		r := newRunner(n, 32)
		r.Capabilities.Labels = []string{"gpu"}
		switch {
		case n < 3:
			r.Capabilities.Labels = nil
		case n == 5:
			r.Capabilities.Resources = box(64)
			r.Connected = false
		}
		s.Runners = append(s.Runners, r)
	}
	j := newJob(1, 1, "p")
	j.Need.Constraints.Labels, j.Need.Resources.Memory = []string{"gpu"}, 64*forge.GiB
	paused := newJob(2, 1, "p")
	paused.NotYet = true
	s.Jobs = []scheduler.Job{j, paused}
	plan := check(t, "nothing fits", s)
	for id, want := range map[int]string{
		1: "not connected on 1 runner, memory 64 GiB > 32 GiB on 2 runners, label gpu missing on 3 runners",
		2: "pausing before it is offered again, not connected on 1 runner",
	} {
		why, ok := plan.Why(jobID(id))
		if got := why.String(); got != want || !ok || why.Ahead != id-1 {
			t.Errorf("job %d, %d ahead: %q, want %q", id, why.Ahead, got, want)
		}
	}
	why, _ := plan.Why(jobID(2))
	if got := why.Passed[0].String(); got != "r0 would take it" {
		t.Error(got)
	}
	empty := scheduler.Place(scheduler.Snapshot{Jobs: []scheduler.Job{j}})
	if why, _ := empty.Why(j.ID); why.String() != "there is no runner" {
		t.Error(why)
	}
	if _, ok := plan.Why(jobID(9)); ok {
		t.Error("an unknown job is explained")
	}
	if _, ok := plan.WhyRunner(runnerID(9)); ok {
		t.Error("an unknown runner is explained")
	}
}

func TestWhatPassesAsJobsEndIsNearerThanOneThingThatSomebodyMustChange(t *testing.T) {
	full, bare, away := newRunner(1, 2), newRunner(2, 2), newRunner(3, 2)
	full.Open = []scheduler.Open{{Project: "p", Resources: box(2)}}
	full.Capabilities.Labels, away.Capabilities.Labels = []string{"gpu"}, []string{"gpu"}
	away.Connected = false
	j := newJob(1, 1, "p")
	j.Need.Constraints.Labels = []string{"gpu"}
	plan := check(t, "nothing fits", scheduler.Snapshot{Jobs: []scheduler.Job{j}, Runners: []scheduler.Runner{bare, away, full}})
	why, _ := plan.Why(j.ID)
	var order []string
	for _, p := range why.Passed {
		order = append(order, p.Name)
	}
	if diff := cmp.Diff([]string{"r1", "r3", "r2"}, order); diff != "" {
		t.Error(diff)
	}
}

func BenchmarkPlace(b *testing.B) {
	for _, load := range []struct {
		name string
		used int
	}{{"idle", 0}, {"busy", 8}} {
		b.Run(load.name, func(b *testing.B) {
			s := large(load.used)
			b.ReportAllocs()
			for b.Loop() {
				scheduler.Place(s)
			}
		})
	}
	b.Run("why", func(b *testing.B) {
		s := large(8)
		plan := scheduler.Place(s)
		for b.Loop() {
			plan.Why(s.Jobs[500].ID)
		}
	})
}

// large is a thousand jobs of ten projects and two hundred runners.
func large(used int) scheduler.Snapshot {
	var s scheduler.Snapshot
	for n := range 200 {
		r := newRunner(n, 8)
		r.Capabilities.Labels = []string{fmt.Sprintf("zone=%d", n%7), "ssd"}
		r.Open = []scheduler.Open{{Project: "0", Resources: box(used)}}
		s.Runners = append(s.Runners, r)
	}
	for n := range 1000 {
		j := newJob(n, 1+n%3, fmt.Sprint(n%10))
		j.Need.Constraints.Labels = []string{fmt.Sprintf("zone=%d", n%7)}
		j.Need.Constraints.OS = "linux"
		s.Jobs = append(s.Jobs, j)
	}
	return s
}

func TestADisabledRunnerIsToldAsDisabledAndNotAsGone(t *testing.T) {
	job := newJob(1, 1, "a")
	s := scheduler.Snapshot{Jobs: []scheduler.Job{job}, Runners: []scheduler.Runner{{
		Runner: forge.Runner{ID: runnerID(1), Name: "off", Pool: job.Need.Constraints.Pool, Trust: job.Need.Constraints.Trust, Disabled: true},
	}}}
	why, _ := scheduler.Place(s).Why(job.ID)
	if got := why.String(); got != "disabled on 1 runner" {
		t.Errorf("%q", got)
	}
}

// Of a machine that never came nothing is known, so nothing else is said of it.
func TestARunnerThatNeverCameIsNotConnectedAndNoMore(t *testing.T) {
	job := newJob(1, 1, "a")
	s := scheduler.Snapshot{Jobs: []scheduler.Job{job}, Runners: []scheduler.Runner{{
		Runner: forge.Runner{ID: runnerID(1), Name: "new", Pool: job.Need.Constraints.Pool, Trust: job.Need.Constraints.Trust},
	}}}
	why, waits := scheduler.Place(s).Why(job.ID)
	if !waits {
		t.Fatal("it was placed")
	}
	if misses := why.Passed[0].Misses; len(misses) != 1 || misses[0].Kind != forge.MissDisconnected {
		t.Errorf("passed for %v", misses)
	}
}
