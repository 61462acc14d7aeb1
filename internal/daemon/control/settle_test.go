package control

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// graph reads jobs as "key[needs]=State", with ? behind an optional need, ! behind a state for the infrastructure's fault and
// * for a cancel that was asked for. It returns their keys by id as well.
func graph(t testing.TB, text string) ([]store.Job, map[forge.JobID]string) {
	t.Helper()
	states := map[string]forge.JobState{}
	for s := forge.JobWaiting; s <= forge.JobSkipped; s++ {
		states[s.String()] = s
	}
	var jobs []store.Job
	names := map[forge.JobID]string{}
	for i, word := range strings.Fields(text) {
		head, state, _ := strings.Cut(word, "=")
		key, needs, _ := strings.Cut(strings.TrimSuffix(head, "]"), "[")
		j := store.Job{Draft: forge.JobSpecID{byte(i + 1)}}
		j.ID = forge.JobID{ULID: forge.ULID{15: byte(i + 1), 14: byte(i >> 8)}}
		j.Key = forge.JobKey(key)
		for need := range strings.FieldsFuncSeq(needs, func(r rune) bool { return r == ',' }) {
			name, optional := strings.CutSuffix(need, "?")
			j.Needs = append(j.Needs, forge.JobNeed{Job: forge.JobKey(name), Optional: optional})
		}
		j.Authority.Outcome = forge.ExitCode
		if rest, ok := strings.CutSuffix(state, "!"); ok {
			state, j.Authority.Outcome = rest, forge.Lost
		}
		state, j.Authority.CancelRequested = strings.CutSuffix(state, "*")
		if j.State = states[state]; j.State == 0 {
			t.Fatalf("%q is no state", state)
		}
		j.Authority.State = j.State
		jobs = append(jobs, j)
		names[j.ID] = key
	}
	return jobs, names
}

// told writes a settlement in words.
func told(s store.Settlement, names map[forge.JobID]string) string {
	var words []string
	for _, p := range s.Plan {
		words = append(words, "plan "+names[p.Job])
	}
	for _, k := range s.Skip {
		words = append(words, "skip "+names[k.Job]+" ("+k.Reason+")")
	}
	for _, id := range s.Cancel {
		words = append(words, "cancel "+names[id])
	}
	for _, e := range s.Run {
		words = append(words, "run "+string(e))
	}
	return strings.Join(words, ", ")
}

func TestWhatHappensNextInARun(t *testing.T) {
	for _, c := range []struct{ name, jobs, want string }{
		{"a job without needs is planned", "a=Waiting", "plan a"},
		{"a job whose need is not over waits", "a=Ready b[a]=Waiting", ""},
		{"a run starts with its first active job", "a=Active b[a]=Waiting", "run start"},
		{"an offer starts nothing", "a=Offered", ""},
		{"a job whose needs ended well is planned", "a=Succeeded b[a]=Waiting", "plan b, run start"},
		{"all legs must have ended", "a=Succeeded a=Active b[a]=Waiting", "run start"},
		{"one leg that failed is enough", "a=Active a=Failed b[a]=Waiting", "skip b (a, which it needs, failed), run start"},
		{
			"skipping goes on to those who wait", "a=Failed b[a]=Waiting c[b]=Waiting d[c]=Waiting",
			"skip b (a, which it needs, failed), skip c (b, which it needs, was skipped), skip d (c, which it needs, was skipped), run start, run fail",
		},
		{
			"whatever the order of the jobs", "d[c]=Waiting c[b]=Waiting b[a]=Waiting a=Failed",
			"skip b (a, which it needs, failed), skip c (b, which it needs, was skipped), skip d (c, which it needs, was skipped), run start, run fail",
		},
		{"a cancelled need skips", "a=Cancelled b[a]=Waiting", "skip b (a, which it needs, was cancelled), run cancel"},
		{"an optional need may be skipped", "a=Failed b[a]=Skipped c[b?]=Waiting", "plan c, run start"},
		{"also in the same settlement", "a=Failed b[a]=Waiting c[b?]=Waiting", "plan c, skip b (a, which it needs, failed), run start"},
		{"an optional need must not have failed", "a=Failed b[a?]=Waiting", "skip b (a, which it needs, failed), run start, run fail"},
		{"one bad need is enough, whatever the others do", "a=Active b=Failed c[a,b]=Waiting", "skip c (b, which it needs, failed), run start"},
		{
			"legs may have needs of their own", "a=Failed b=Succeeded c[a]=Waiting c[b]=Waiting",
			"plan c, skip c (a, which it needs, failed), run start",
		},
		{"a run ends well with its last job", "a=Succeeded b[a]=Succeeded", "run start, run succeed"},
		{"a failed job fails the run when all is over", "a=Failed b=Active", "run start"},
		{"failed comes before cancelled", "a=Failed b=Cancelled", "run start, run fail"},
		{"cancelled comes before a fault of ours", "a=Failed! b=Cancelled", "run start, run cancel"},
		{"a fault of ours is an error, not a failure", "a=Failed! b=Succeeded", "run start, run abort"},
		{"a job's own fault comes before ours", "a=Failed! b=Failed", "run start, run fail"},
	} {
		jobs, names := graph(t, c.jobs)
		run := store.Run{Run: forge.Run{State: forge.RunPlanned}}
		if got := told(settle(run, jobs), names); got != c.want {
			t.Errorf("%s: %s\n got %q\nwant %q", c.name, c.jobs, got, c.want)
		}
	}
}

// Case B08.
func TestCancellingARunLeavesNoJobBehind(t *testing.T) {
	for _, c := range []struct{ jobs, want string }{
		{"a=Waiting b[a]=Waiting", "cancel a, cancel b, run cancel"},
		{"a=Ready", "cancel a, run cancel"},
		{"a=Active b[a]=Waiting", "cancel a, cancel b, run start"},
		{"a=Offered", "cancel a"},
		{"a=Active* b[a]=Cancelled*", "run start"}, // asked once
		{"a=Succeeded b[a]=Waiting", "cancel b, run start, run cancel"},
		{"a=Succeeded", "run start, run succeed"}, // it came too late
		{"a=Failed b[a]=Waiting", "cancel b, run start, run fail"},
	} {
		jobs, names := graph(t, c.jobs)
		run := store.Run{Run: forge.Run{State: forge.RunPlanned}, CancelRequested: true}
		if got := told(settle(run, jobs), names); got != c.want {
			t.Errorf("%s\n got %q\nwant %q", c.jobs, got, c.want)
		}
	}
}

func TestARunThatHasEndedIsLeftAlone(t *testing.T) {
	for s := forge.RunSucceeded; s <= forge.RunError; s++ {
		jobs, names := graph(t, "a=Waiting b=Active")
		run := store.Run{Run: forge.Run{State: s}, CancelRequested: true}
		if got := told(settle(run, jobs), names); got != "" {
			t.Errorf("%v: %s", s, got)
		}
	}
}

func TestARunThatRunsDoesNotStartAgain(t *testing.T) {
	jobs, names := graph(t, "a=Active")
	if got := told(settle(store.Run{Run: forge.Run{State: forge.RunRunning}}, jobs), names); got != "" {
		t.Error(got)
	}
}

// Whatever the graph, and however its jobs end: everything that settle says is legal, settling twice says nothing new,
// and the run ends, with every job.
func TestEveryRunEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		jobs := drawGraph(t)
		run := store.Run{Run: forge.Run{State: forge.RunPlanned}}
		for step := 0; !run.State.Ended(); step++ {
			if step > 20*len(jobs)+20 {
				t.Fatalf("still %v with %v", run.State, jobs)
			}
			apply(t, &run, jobs, settle(run, jobs))
			if again := settle(run, jobs); len(again.Plan)+len(again.Skip)+len(again.Cancel)+len(again.Run) > 0 {
				t.Fatalf("settled again: %+v", again)
			}
			progress(t, &run, jobs)
		}
		for _, j := range jobs {
			if !j.State.Ended() {
				t.Fatalf("the run is %v with a job that is %v", run.State, j.State)
			}
		}
	})
}

func drawGraph(t *rapid.T) []store.Job {
	n := rapid.IntRange(1, 8).Draw(t, "jobs")
	jobs := make([]store.Job, n)
	for i := range jobs {
		j := &jobs[i]
		j.ID = forge.JobID{ULID: forge.ULID{15: byte(i + 1)}}
		j.Key = forge.JobKey(fmt.Sprint("k", rapid.IntRange(i/2, i).Draw(t, "key")))
		j.State, j.Draft = forge.JobWaiting, forge.JobSpecID{1}
		for k := range i / 2 { // keys of earlier jobs only: no circles
			if rapid.IntRange(0, 2).Draw(t, "need") == 0 {
				j.Needs = append(j.Needs, forge.JobNeed{Job: forge.JobKey(fmt.Sprint("k", k)), Optional: rapid.Bool().Draw(t, "optional")})
			}
		}
	}
	return jobs
}

// apply holds a settlement against the tables, as the store does.
func apply(t *rapid.T, run *store.Run, jobs []store.Job, s store.Settlement) {
	change := func(id forge.JobID, event lifecycle.Event) {
		j := &jobs[slices.IndexFunc(jobs, func(j store.Job) bool { return j.ID == id })]
		to, err := lifecycle.Job.Next(j.State, event)
		if err != nil {
			t.Fatal(err)
		}
		j.State = to
	}
	for _, p := range s.Plan {
		change(p.Job, lifecycle.JobPlan)
	}
	for _, k := range s.Skip {
		change(k.Job, lifecycle.JobSkip)
	}
	for _, id := range s.Excuse {
		jobs[slices.IndexFunc(jobs, func(j store.Job) bool { return j.ID == id })].Excused = true
	}
	for _, id := range s.Cancel {
		j := &jobs[slices.IndexFunc(jobs, func(j store.Job) bool { return j.ID == id })]
		rows := &authority.Rows{Job: authority.Row[authority.Job]{Found: true, Value: authority.Job{State: j.State}}}
		(&authority.CancelJob{Job: id}).Apply(rows)
		j.State, j.Authority.CancelRequested = rows.Job.Value.State, rows.Job.Value.CancelRequested
	}
	for _, e := range s.Run {
		to, err := lifecycle.Run.Next(run.State, e)
		if err != nil {
			t.Fatal(err)
		}
		run.State = to
	}
}

// progress lets one thing happen that is not the settling's doing.
func progress(t *rapid.T, run *store.Run, jobs []store.Job) {
	if rapid.IntRange(0, 15).Draw(t, "cancel") == 0 {
		run.CancelRequested = true
	}
	var moves []func()
	for i := range jobs {
		j := &jobs[i]
		for _, e := range lifecycle.Job.Edges() {
			own := e.Event == lifecycle.JobPlan || e.Event == lifecycle.JobSkip
			if e.From == j.State && !own && e.From != forge.JobWaiting && e.Event != lifecycle.JobRequeue {
				moves = append(moves, func() {
					j.State = e.To
					j.Authority.Outcome = rapid.SampledFrom([]forge.Class{forge.ExitCode, forge.Lost}).Draw(t, "outcome")
				})
			}
		}
	}
	if len(moves) > 0 {
		moves[rapid.IntRange(0, len(moves)-1).Draw(t, "move")]()
	}
}
