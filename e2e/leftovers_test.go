//go:build linux

package e2e_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/admin"
)

// wear is how much a fleet is put through before one looks what is left of it.
type wear struct {
	attempts int
	kills    int
	within   time.Duration
}

// Each batch of jobs loses one of the agents, until there were kills enough.
var (
	everydayWear = wear{attempts: 40, kills: 4, within: storyWithin}
	nightlyWear  = wear{attempts: 1000, kills: 50, within: 30 * time.Minute}
)

// seedEnv plays the same jobs and kills again. What the machine makes of them is another matter.
const seedEnv = "FORGEYARD_SEED"

func randomOf(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(seedEnv); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(seedEnv, err)
		}
	}
	t.Logf("%s=%d", seedEnv, seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// Row 07-T274, cases B40 and B41: attempts with sources and artifacts come and go, some are cancelled, and their agents are killed
// in the middle of all that. When every job is settled, nothing of any attempt is anywhere.
func TestNothingIsLeftOfAttemptsWhoseAgentsAreKilled(t *testing.T) {
	amount := everydayWear
	if os.Getenv(nightly) != "" {
		amount = nightlyWear
	}
	s := newStoryOn(t, stage{scale: fleet.Fast, base: memory(2 << 30), within: amount.within})
	y := &yard{story: s, random: randomOf(t), amount: amount, attempts: map[string]bool{}, totals: map[string]int{}}
	for _, name := range []string{"one", "two"} {
		y.agents = append(y.agents, s.agent(name, 4, ""))
	}
	for i := range 4 {
		y.trees = append(y.trees, s.plant(y.files(i)))
	}
	y.looksWhileOneIsAtWork()
	t.Logf("%s what is there is seen", time.Now().Format("15:04:05.000"))
	for y.totals["attempts"] < amount.attempts || y.totals["kills"] < amount.kills || y.lacks("Succeeded", "Failed", "Cancelled", "lost attempts") {
		y.batch() // what happens is drawn
	}
	y.nothingIsLeft()
	t.Logf("%v", y.totals)
}

// yard is a fleet that is worn.
type yard struct {
	*story
	random *rand.Rand
	amount wear
	agents []*fleet.Agent
	trees  []source

	attempts map[string]bool // that there were
	totals   map[string]int
	batches  int
}

// lacks reports whether something of what is to happen has not happened yet.
func (y *yard) lacks(ends ...string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return y.totals[end] == 0 })
}

// files are the sources of one tree: small, and enough of them to be found half made.
func (y *yard) files(tree int) map[string]string {
	files := map[string]string{"name": fmt.Sprint("tree ", tree)}
	for i := range 60 {
		files[fmt.Sprintf("d%d/e%d/f%d", i%5, i%3, i)] = fmt.Sprintf("%d of %d\n%s", i, tree, strings.Repeat("x", y.random.IntN(4000)))
	}
	return files
}

// chore is one job of a batch.
type chore struct {
	tree   int
	ends   string // how it ends if nobody cancels it
	script string
	spec   func(*api.JobSpec)
}

// chore draws a job. It makes its artifact of its source, and leaves what a job may leave: processes that do not end with it,
// folders that cannot be entered, pipes, and depth.
func (y *yard) chore() chore {
	c := chore{tree: y.random.IntN(len(y.trees)), ends: "Succeeded"}
	exit := ""
	if y.random.IntN(6) == 0 {
		c.ends, exit = "Failed", "exit 3"
	}
	c.script = fmt.Sprintf(`set -e
		setsid sleep 600 >/dev/null 2>&1 </dev/null &
		mkdir -p /work/build/closed/inner "/work/build/$(printf 'd/%%.0s' $(seq 100))"
		mkfifo /work/build/pipe
		chmod 0500 /work/build/closed; chmod 0 /work/build/closed/inner
		rm -r d0 2>/dev/null || true
		seq %d
		sleep %.2f
		mkdir -p /work/outputs/sub
		cat name > /work/outputs/name
		find . -name 'f*' | sort > /work/outputs/sub/list
		%s`, 1+y.random.IntN(2000), y.random.Float64(), exit)
	mode, none := "cow", y.random.IntN(2) == 0
	if y.random.IntN(3) == 0 {
		mode = "ro"
	}
	c.spec = func(spec *api.JobSpec) {
		y.trees[c.tree].as(mode)(spec)
		spec.Outputs = []api.Output{{Name: "out", Base: "outputs", Patterns: []string{"**"}, Required: true}}
		spec.Retry = &api.Retry{Infra: number(uint8(forge.MaxRetries))}
		spec.Timeouts = &api.Timeouts{Grace: duration(time.Second)}
		spec.Resources = &api.Resources{CPU: number(api.Cores(100)), Memory: number(api.Size(64 << 20)), Disk: number(api.Size(64 << 20))}
		if none {
			spec.Network = ""
		}
	}
	return c
}

// batch lets some jobs run, kills an agent in the middle and waits until the last of them is settled.
func (y *yard) batch() {
	y.t.Helper()
	const jobs = 20
	y.batches++
	request := &api.RunRequest{}
	var chores []chore
	for i := range jobs {
		c := y.chore()
		job := fleet.Shell(c.script, c.spec).Jobs[0]
		job.Key = fmt.Sprint("job-", i)
		request.Jobs, chores = append(request.Jobs, job), append(chores, c)
	}
	run := y.submit(request)
	cancelled := y.cancels(run)
	for range 2 {
		if y.totals["kills"] < y.amount.kills {
			y.kill(run)
		}
	}
	done, err := y.fleet.Daemon.AwaitRun(y.ctx, y.client, run.ID)
	y.must(err)
	y.t.Logf("%s batch %d is settled", time.Now().Format("15:04:05.000"), y.batches)
	for i, j := range done.Jobs {
		y.settled(j.ID, chores[i], cancelled[j.ID])
	}
}

// cancels asks for the end of a few jobs, wherever they are by then.
func (y *yard) cancels(run *api.Run) map[string]bool {
	y.t.Helper()
	cancelled := map[string]bool{}
	for range 2 {
		id := run.Jobs[y.random.IntN(len(run.Jobs))].ID
		y.reaches(id)
		_, err := y.client.CancelJob(y.ctx, id)
		y.must(err)
		cancelled[id] = true
	}
	return cancelled
}

// reaches waits until a job's attempt has come as far as chance will have it, or farther.
func (y *yard) reaches(job string) {
	y.t.Helper()
	least := []forge.AttemptState{0, forge.AttemptAccepted, forge.AttemptRunning, forge.AttemptRunning, forge.AttemptUploading}[y.random.IntN(5)]
	if least == 0 {
		return
	}
	y.must(fleet.Await(y.ctx, fmt.Sprintf("job %s to reach %v", job, least), func() (bool, error) {
		j, err := y.client.Job(y.ctx, job)
		if err != nil || len(j.AllAttempts) == 0 {
			return j != nil && j.Ended, err
		}
		return j.Ended || !slices.Contains(before(least), j.AllAttempts[len(j.AllAttempts)-1].State), nil
	}))
}

// before names the states that an attempt has before one.
func before(state forge.AttemptState) (names []string) {
	for s := forge.AttemptOffered; s < state; s++ {
		names = append(names, s.String())
	}
	return names
}

// kill kills an agent while a job is somewhere on its way. Mostly the agent comes back at once; sometimes not before its leases
// have run out and its jobs run elsewhere, or are over.
func (y *yard) kill(run *api.Run) {
	y.t.Helper()
	victim, job := y.agents[y.random.IntN(len(y.agents))], run.Jobs[y.random.IntN(len(run.Jobs))].ID
	y.reaches(job)
	victim.Kill()
	y.totals["kills"]++
	if y.totals["kills"]%16 == 5 { // not on everyday: it takes as long as a lease
		y.totals["long absences"]++
		y.must(victim.AwaitState(y.ctx, "offline"))
		y.t.Logf("%s it is missed", time.Now().Format("15:04:05.000"))
		_, err := y.fleet.Daemon.AwaitRun(y.ctx, y.client, run.ID)
		y.must(err)
	}
	y.must(victim.Start())
	y.must(fleet.Await(y.ctx, "the agent to be back", func() (bool, error) { // the daemon may still speak of the one before
		own := admin.NewClient(victim.Folder)
		defer own.Close()
		status, err := own.Status(y.ctx)
		return err == nil && status.State == "Online", nil
	}))
}

// settled looks how a job has ended: once, as it should, with the files that it was to make.
func (y *yard) settled(id string, c chore, cancelled bool) {
	y.t.Helper()
	job, err := y.client.Job(y.ctx, id)
	y.must(err)
	y.totals[job.State]++
	if !job.Ended || job.State != c.ends && (!cancelled || job.State != "Cancelled") {
		y.t.Errorf("job %s is %s, with class %q: %s", id, job.State, job.Class, job.Reason)
	}
	for _, a := range job.AllAttempts {
		y.totals["attempts"]++
		y.attempts[a.ID] = true
		if !a.Ended {
			y.t.Errorf("attempt %s is %s", a.ID, a.State)
		}
		if a.State == "Lost" {
			y.totals["lost attempts"]++
		}
	}
	if job.State != "Succeeded" {
		return
	}
	kept := y.kept(id)
	if text, want := string(y.artifact(kept.ID, "name")), fmt.Sprint("tree ", c.tree); text != want {
		y.t.Errorf("job %s made %q of its source, not %q", id, text, want)
	}
}

// looksWhileOneIsAtWork shows that what is looked for at the end is found while it is there.
func (y *yard) looksWhileOneIsAtWork() {
	y.t.Helper()
	run, id := y.shell("echo up; note up yes; until has gate; do sleep 0.05; done", y.trees[0].as("cow"))
	a := y.attempt(id, forge.AttemptRunning)
	y.file(y.path("up"))
	signs := map[string]string{
		"its workspace": "/work/" + a.ID, "its log": "/spool/" + a.ID, "its record": "/journal/" + a.ID, "its process": "process ",
		"that it is held": "holds attempt " + a.ID, "its source": "Trees:1", "its room": "has reserved {", "its room at the daemon": "by its daemon there are free of",
	}
	if y.hasGroups() {
		signs["its group"] = "control group "
	}
	var left []string
	err := fleet.Await(y.ctx, "everything of an attempt to be seen", func() (all bool, err error) {
		left, err = y.fleet.Remains(y.ctx, []string{a.ID})
		return !slices.ContainsFunc(slices.Collect(maps.Values(signs)), func(sign string) bool { return !hasSign(left, sign) }), err
	})
	for what, sign := range signs {
		if !hasSign(left, sign) {
			y.t.Errorf("while a job is at work, nothing shows %s: %q", what, left)
		}
	}
	y.must(err)
	y.must(writeFile(y.path("gate")))
	classOf(y.t, y.ended(run), "Succeeded", "Succeeded")
	y.attempts[a.ID] = true
}

func hasSign(left []string, sign string) bool {
	return slices.ContainsFunc(left, func(l string) bool { return strings.Contains(l, sign) })
}

// hasGroups reports whether sandboxes have control groups on this machine.
func (y *yard) hasGroups() bool {
	y.t.Helper()
	runner, err := y.agents[0].Runner(y.ctx)
	y.must(err)
	for _, sandbox := range runner.Capabilities.Sandboxes {
		if slices.ContainsFunc(sandbox.Levels, func(level string) bool { return strings.HasPrefix(level, "cgroup-") }) {
			return true
		}
	}
	return false
}

// nothingIsLeft looks for everything, first while the agents run and then without them.
func (y *yard) nothingIsLeft() {
	y.t.Helper()
	var attempts []string
	for id := range y.attempts {
		attempts = append(attempts, id)
	}
	y.must(y.fleet.AwaitNoRemains(y.ctx, attempts))
	for _, a := range y.agents {
		y.must(a.Signal(syscall.SIGTERM))
		code, err := a.Exited(y.ctx)
		y.must(err)
		if code != 0 {
			y.t.Errorf("exit code %d of an agent that was asked to end", code)
		}
	}
	y.must(y.fleet.AwaitNoRemains(y.ctx, attempts))
}
