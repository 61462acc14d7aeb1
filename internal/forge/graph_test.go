package forge_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// job makes a waiting job of one run.
func job(n int, key string, needs ...string) forge.Job {
	j := forge.Job{
		ID: forge.JobID{ULID: forge.ULID{14: byte(n >> 8), 15: byte(n), 0: 1}}, Run: forge.RunID{ULID: ulid(1)},
		Key: forge.JobKey(key), State: forge.JobWaiting,
	}
	for _, need := range needs {
		j.Needs = append(j.Needs, forge.JobNeed{Job: forge.JobKey(need)})
	}
	return j
}

func leg(j forge.Job, value string) forge.Job {
	j.Leg = forge.Leg{{Axis: "go", Value: value}}
	return j
}

func TestTheJobsOfARunFormAGraphWithoutCircles(t *testing.T) {
	other := job(2, "b")
	other.Run = forge.RunID{ULID: ulid(2)}
	for _, test := range []struct {
		name string
		want []string
		jobs []forge.Job
	}{
		{"one job", nil, []forge.Job{job(1, "a")}},
		{"a diamond", nil, []forge.Job{job(1, "d", "b", "c"), job(2, "b", "a"), job(3, "c", "a"), job(4, "a")}},
		{"legs of one job", nil, []forge.Job{leg(job(1, "a"), "1"), leg(job(2, "a"), "2"), job(3, "b", "a")}},
		{"no job", []string{"jobs"}, nil},
		{"an unknown need", []string{"jobs[0].needs[0]"}, []forge.Job{job(1, "a", "b")}},
		{"a need of itself", []string{"jobs[0].needs[0]"}, []forge.Job{job(1, "a", "a")}},
		{"a circle of two", []string{"jobs"}, []forge.Job{job(1, "a", "b"), job(2, "b", "a")}},
		{"a circle of three with a tail", []string{"jobs"}, []forge.Job{job(1, "a", "b"), job(2, "b", "c"), job(3, "c", "a"), job(4, "d", "a")}},
		{"a circle through a leg", []string{"jobs"}, []forge.Job{leg(job(1, "a"), "1"), leg(job(2, "a", "b"), "2"), job(3, "b", "a")}},
		{"a need named twice", []string{"jobs[1].needs[1]"}, []forge.Job{job(1, "a"), job(2, "b", "a", "a")}},
		{"one id twice", []string{"jobs[1]"}, []forge.Job{job(1, "a"), job(1, "b")}},
		{"one key and leg twice", []string{"jobs[1]"}, []forge.Job{leg(job(1, "a"), "1"), leg(job(2, "a"), "1")}},
		{"two runs", []string{"jobs[1].run"}, []forge.Job{job(1, "a"), other}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, paths(t, forge.ValidateGraph(test.jobs))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestARunHoldsAtItsBoundOfJobsAndNotOnePastIt(t *testing.T) {
	jobs := list(forge.MaxJobsPerRun+1, func(i int) forge.Job { return job(i, fmt.Sprint(i)) })
	if err := forge.ValidateGraph(jobs[:forge.MaxJobsPerRun]); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"jobs"}, paths(t, forge.ValidateGraph(jobs))); diff != "" {
		t.Error(diff)
	}
}

func TestAJobIsRefusedForEachThingThatIsWrongWithIt(t *testing.T) {
	for _, test := range []struct {
		want  []string
		spoil func(*forge.Job)
	}{
		{nil, func(*forge.Job) {}},
		{nil, func(j *forge.Job) { j.State, j.Spec = forge.JobReady, forge.JobSpecID{1} }},
		{nil, func(j *forge.Job) { j.State = forge.JobSkipped }},
		{nil, func(j *forge.Job) {
			j.Needs = list(forge.MaxNeeds, func(i int) forge.JobNeed { return forge.JobNeed{Job: forge.JobKey(fmt.Sprint(i))} })
		}},
		{[]string{"id"}, func(j *forge.Job) { j.ID = forge.JobID{} }},
		{[]string{"run"}, func(j *forge.Job) { j.Run = forge.RunID{} }},
		{[]string{"key"}, func(j *forge.Job) { j.Key = "" }},
		{[]string{"leg[0].axis"}, func(j *forge.Job) { j.Leg = forge.Leg{{}} }},
		{[]string{"state"}, func(j *forge.Job) { j.State = 0 }},
		{[]string{"spec"}, func(j *forge.Job) { j.State = forge.JobReady }},
		{[]string{"needs[0].job"}, func(j *forge.Job) { j.Needs = []forge.JobNeed{{Job: "a b"}} }},
		{[]string{"needs"}, func(j *forge.Job) { j.Needs = make([]forge.JobNeed, forge.MaxNeeds+1) }},
	} {
		j := job(1, "a")
		test.spoil(&j)
		if diff := cmp.Diff(test.want, paths(t, j.Validate())); diff != "" {
			t.Error(diff)
		}
	}
}

func TestARunIsRefusedForEachThingThatIsWrongWithIt(t *testing.T) {
	for _, test := range []struct {
		want  []string
		spoil func(*forge.Run)
	}{
		{nil, func(*forge.Run) {}},
		{[]string{"id"}, func(r *forge.Run) { r.ID = forge.RunID{} }},
		{[]string{"project"}, func(r *forge.Run) { r.Project = "" }},
		{[]string{"state"}, func(r *forge.Run) { r.State = 0 }},
		{[]string{"state"}, func(r *forge.Run) { r.State = forge.RunError + 1 }},
		{[]string{"trust"}, func(r *forge.Run) { r.Trust = 0 }},
	} {
		r := forge.Run{ID: forge.RunID{ULID: ulid(1)}, Project: forge.DefaultProject, State: forge.RunPlanned, Trust: forge.TrustUntrusted}
		test.spoil(&r)
		if diff := cmp.Diff(test.want, paths(t, r.Validate())); diff != "" {
			t.Error(diff)
		}
	}
}
