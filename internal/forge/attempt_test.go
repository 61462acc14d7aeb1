package forge_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func ulid(n byte) forge.ULID { return forge.ULID{15: n} }

func goodContext() forge.AttemptContext {
	return forge.AttemptContext{
		Job: forge.JobID{ULID: ulid(1)}, Attempt: forge.AttemptID{ULID: ulid(2)}, Lease: forge.LeaseID{ULID: ulid(3)},
		Spec: forge.JobSpecID{31: 4}, Runner: forge.RunnerID{ULID: ulid(5)}, Session: forge.AgentSessionID{ULID: ulid(6)},
	}
}

func goodCompletion() *forge.Completion {
	c := &forge.Completion{
		Context: goodContext(),
		Message: forge.MessageID{ULID: ulid(7)},
		Result: forge.Result{
			Class: forge.ExitCode, ExitCode: 3, Signal: 4, Limit: 5, Peak: 6, Duration: time.Second,
			Steps: []forge.StepResult{{Index: 1, Class: forge.ExitCode, ExitCode: 2, Signal: 3, Start: 4, Duration: 5}},
		},
		Capture: forge.Succeeded,
		Outputs: []forge.OutputRef{{Output: 1, Ref: digest.RefOf([]byte("out")), Tree: true}},
		Log:     forge.LogSeal{Last: 9, Bytes: 100, Hash: digest.Of([]byte("log"))},
	}
	c.Hash = c.ResultHash()
	return c
}

// eachLeaf calls visit with every value inside v that holds no other, and the path to it.
func eachLeaf(v reflect.Value, path string, visit func(path string, leaf reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			eachLeaf(v.Field(i), path+"."+v.Type().Field(i).Name, visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			eachLeaf(v.Index(i), path+"[]", visit)
		}
	case reflect.Array:
		visit(path, v.Index(v.Len()-1))
	default:
		visit(path, v)
	}
}

// change gives a leaf another value.
func change(leaf reflect.Value) {
	switch {
	case leaf.CanUint():
		leaf.SetUint(leaf.Uint() ^ 1)
	case leaf.CanInt():
		leaf.SetInt(leaf.Int() ^ 1)
	case leaf.Kind() == reflect.Bool:
		leaf.SetBool(!leaf.Bool())
	default:
		panic("no way to change a " + leaf.Type().String())
	}
}

func TestEveryFieldOfACompletionIsInItsResultHash(t *testing.T) {
	original := goodCompletion().ResultHash()
	var leaves []string
	eachLeaf(reflect.ValueOf(goodCompletion()).Elem(), "", func(path string, _ reflect.Value) { leaves = append(leaves, path) })
	for _, changed := range leaves {
		c := goodCompletion()
		eachLeaf(reflect.ValueOf(c).Elem(), "", func(path string, leaf reflect.Value) {
			if path == changed {
				change(leaf)
			}
		})
		if same := c.ResultHash() == original; same != (changed == ".Hash") {
			t.Errorf("%s is changed and the hash is the same: %v", changed, same)
		}
	}
	if len(leaves) < 25 {
		t.Errorf("only %d fields were found", len(leaves))
	}
}

func TestTheResultHashKnowsHowListsAreCut(t *testing.T) {
	a, b := goodCompletion(), goodCompletion()
	a.Result.Steps, b.Outputs = nil, nil
	seen := []digest.Digest{goodCompletion().ResultHash(), a.ResultHash(), b.ResultHash()}
	if seen[0] == seen[1] || seen[1] == seen[2] || seen[0] == seen[2] {
		t.Error("an empty list does not change the hash")
	}
}

func TestACompletionOutcomeIsThatOfTheWorkloadThenOfItsOutputs(t *testing.T) {
	for _, test := range []struct {
		name            string
		result, capture forge.Class
		cancelSeen      bool
		want            forge.Class
	}{
		{"all is well", forge.Succeeded, forge.Succeeded, false, forge.Succeeded},
		{"the outputs are not", forge.Succeeded, forge.OutputMissing, false, forge.OutputMissing},
		{"a failed workload hides its outputs", forge.ExitCode, forge.OutputMissing, false, forge.ExitCode},
		{"a cancel beats a success", forge.Succeeded, forge.Succeeded, true, forge.Cancelled},
		{"a cancel beats a failure", forge.Signal, forge.Succeeded, true, forge.Cancelled},
		{"the deadline's kill beats a cancel", forge.Lost, forge.Succeeded, true, forge.Lost},
		{"the deadline's kill beats a success", forge.Lost, forge.Succeeded, false, forge.Lost},
	} {
		c := forge.Completion{Result: forge.Result{Class: test.result}, Capture: test.capture, CancelSeen: test.cancelSeen}
		if got := c.Outcome(); got != test.want {
			t.Errorf("%s: %v, want %v", test.name, got, test.want)
		}
	}
}

func TestACompletionIsRefusedForEachThingThatIsWrongWithIt(t *testing.T) {
	if err := goodCompletion().Validate(); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name  string
		spoil func(*forge.Completion)
	}{
		{"no job", func(c *forge.Completion) { c.Context.Job = forge.JobID{} }},
		{"no attempt", func(c *forge.Completion) { c.Context.Attempt = forge.AttemptID{} }},
		{"no lease", func(c *forge.Completion) { c.Context.Lease = forge.LeaseID{} }},
		{"no spec", func(c *forge.Completion) { c.Context.Spec = forge.JobSpecID{} }},
		{"no runner", func(c *forge.Completion) { c.Context.Runner = forge.RunnerID{} }},
		{"no session", func(c *forge.Completion) { c.Context.Session = forge.AgentSessionID{} }},
		{"no message", func(c *forge.Completion) { c.Message = forge.MessageID{} }},
		{"no class", func(c *forge.Completion) { c.Result.Class = 0 }},
		{"unknown class", func(c *forge.Completion) { c.Result.Class = forge.Lost + 1 }},
		{"no capture class", func(c *forge.Completion) { c.Capture = 0 }},
		{"step without class", func(c *forge.Completion) { c.Result.Steps[0].Class = 0 }},
		{"step that took less than no time", func(c *forge.Completion) { c.Result.Steps[0].Duration = -1 }},
		{"one step too many", func(c *forge.Completion) {
			c.Result.Steps = list(forge.MaxStepResults+1, func(int) forge.StepResult { return c.Result.Steps[0] })
		}},
		{"one output too many", func(c *forge.Completion) {
			c.Outputs = list(forge.MaxOutputRefs+1, func(int) forge.OutputRef { return c.Outputs[0] })
		}},
		{"output without digest", func(c *forge.Completion) { c.Outputs[0].Ref = digest.Ref{} }},
	} {
		c := goodCompletion()
		test.spoil(c)
		c.Hash = c.ResultHash()
		if err := c.Validate(); !errors.Is(err, forge.ErrInvalid) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
	changed := goodCompletion()
	changed.Result.ExitCode++
	if err := changed.Validate(); !errors.Is(err, forge.ErrInvalid) {
		t.Errorf("a hash of something else: %v", err)
	}
}

func TestACompletionMayBeAtItsBounds(t *testing.T) {
	c := goodCompletion()
	c.Result.Steps = list(forge.MaxStepResults, func(int) forge.StepResult { return c.Result.Steps[0] })
	c.Outputs = list(forge.MaxOutputRefs, func(int) forge.OutputRef { return c.Outputs[0] })
	c.Hash = c.ResultHash()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}
