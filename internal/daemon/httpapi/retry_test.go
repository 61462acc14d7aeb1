package httpapi

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
)

// ADR 0021.
func TestARetryIsARunThatNamesAnother(t *testing.T) {
	w := newWorld(t)
	job := func(key string) api.JobRequest {
		return api.JobRequest{Key: key, Spec: api.JobSpec{Steps: []api.Step{{Argv: []string{"true"}}}, Sandbox: &api.Sandbox{Kind: "process"}}}
	}
	run, err := w.client.Submit(w.ctx, &api.RunRequest{Name: "ci", Jobs: []api.JobRequest{job("a"), job("b")}}, "")
	w.must(err)
	if _, err := w.client.Retry(w.ctx, api.RetryRequest{Run: run.ID}, ""); w.problem(err).Code != api.CodeConflict {
		t.Errorf("of a run that goes on: %v", err)
	}
	_, err = w.client.CancelRun(w.ctx, run.ID)
	w.must(err)
	again, err := w.client.Retry(w.ctx, api.RetryRequest{Run: run.ID[:20], Jobs: []string{"b"}}, "key")
	w.must(err)
	if again.RetryOf != run.ID || again.Name != "ci" || len(again.Jobs) != 1 || again.Jobs[0].Key != "b" || len(again.Taken) != 1 ||
		again.Taken[0].ID != run.Jobs[0].ID || again.Taken[0].Run != run.ID || again.Taken[0].State != "Cancelled" {
		t.Errorf("%+v", again)
	}
	same, err := w.client.Retry(w.ctx, api.RetryRequest{Run: run.ID, Jobs: []string{"b"}}, "key")
	if err != nil || same.ID != again.ID {
		t.Errorf("with the same key: %+v, %v", same, err)
	}
	list, err := w.client.Runs(w.ctx, api.RunFilter{}, api.Page{})
	if err != nil || len(list.Items) != 2 || list.Items[0].RetryOf != run.ID || list.Items[1].RetryOf != "" {
		t.Errorf("%+v, %v", list, err)
	}
	retry := &api.RetryRequest{Run: run.ID}
	for name, bad := range map[string]*api.RunRequest{
		"a name":     {Retry: retry, Name: "x"},
		"jobs":       {Retry: retry, Jobs: []api.JobRequest{job("a")}},
		"all of all": {Retry: &api.RetryRequest{Run: run.ID, All: true, Jobs: []string{"a"}}},
		"no job":     {Retry: &api.RetryRequest{Run: run.ID, Jobs: []string{"c"}}},
	} {
		if _, err := w.client.Submit(w.ctx, bad, ""); w.problem(err).Code != api.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.client.Retry(w.ctx, api.RetryRequest{Run: "01JNOWHERE"}, ""); w.problem(err).Code != api.CodeNotFound {
		t.Errorf("of no run: %v", err)
	}
}
