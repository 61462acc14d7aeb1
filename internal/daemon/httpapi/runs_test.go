package httpapi

import (
	"errors"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
)

func TestARunKeepsItsTitleAndAListCountsItsJobs(t *testing.T) {
	w := newWorld(t)
	job := func(key string, needs ...api.Need) api.JobRequest {
		return api.JobRequest{Key: key, Needs: needs, Spec: api.JobSpec{
			Steps: []api.Step{{Argv: []string{"true"}}}, Sandbox: &api.Sandbox{Kind: "process"},
		}}
	}
	jobs := []api.JobRequest{job("a"), job("b"), job("c", api.Need{Job: "a"})}
	title := strings.Repeat("ü", control.MaxRunName/2)
	run, err := w.client.Submit(w.ctx, &api.RunRequest{Name: title, Jobs: jobs}, "")
	if err != nil || run.Name != title {
		t.Fatalf("submitted: %+v, %v", run, err)
	}
	list, err := w.client.Runs(w.ctx, api.RunFilter{}, api.Page{})
	if err != nil || len(list.Items) != 1 || list.Items[0].Name != title || len(list.Items[0].Jobs) != 0 {
		t.Fatalf("listed: %+v, %v", list, err)
	}
	if c := list.Items[0].Counts; c["Ready"] != 2 || c["Waiting"] != 1 || len(c) != 2 {
		t.Errorf("counted %v", c)
	}
	for _, bad := range []string{title + "x", "two\nlines", "\x1b[31m"} {
		_, err := w.client.Submit(w.ctx, &api.RunRequest{Name: bad, Jobs: jobs}, "")
		var p *api.Problem
		if !errors.As(err, &p) || p.Code != api.CodeInvalid || len(p.Problems) != 1 || p.Problems[0].Path != "name" {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestARunnerThatIsNotThereIsCalledByTheNameThatWasAsked(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"nope", "build-7", "01JB4Z"} {
		_, err := w.client.Runner(w.ctx, name)
		if p := w.problem(err); p.Code != api.CodeNotFound || !strings.Contains(p.Error(), "there is no runner "+name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
