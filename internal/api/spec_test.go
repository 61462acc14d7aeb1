package api

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

var inRun = SpecContext{Project: "default", Key: "build", Trust: forge.TrustTrusted}

// parse reads a specification as a request would bring it.
func parse(t *testing.T, text string) (forge.JobSpec, error) {
	t.Helper()
	var s JobSpec
	if err := Decode([]byte(text), &s); err != nil {
		return forge.JobSpec{}, err
	}
	return s.Forge(inRun)
}

func problems(t *testing.T, err error) map[string]string {
	t.Helper()
	var found forge.Problems
	if !errors.As(err, &found) {
		t.Fatalf("got %v, not a list of problems", err)
	}
	byPath := map[string]string{}
	for _, p := range found {
		byPath[p.Path] = p.What
	}
	return byPath
}

func TestTheSmallestSpecificationHasEveryDefault(t *testing.T) {
	got, err := parse(t, `{"steps":[{"script":"make"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := forge.DefaultJobSpec()
	want.Job, want.Constraints.Trust = "build", forge.TrustTrusted
	want.Steps = []forge.Step{{Script: "make", Shell: DefaultShell, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// Case B10.
func TestATimeoutThatEndsNothingIsRefusedAtItsPlace(t *testing.T) {
	for _, text := range []string{`0`, `-1`, `9e9`, `"0"`, `"0s"`, `"-1s"`, `"9e9"`, `"9e9s"`, `"100000h"`, `"1ns"`, `""`} {
		_, err := parse(t, `{"steps":[{"argv":["true"]}],"timeouts":{"run":`+text+`}}`)
		if what := problems(t, err)["timeouts.run"]; what == "" {
			t.Errorf("run timeout %s: %v", text, err)
		}
		_, err = parse(t, `{"steps":[{"argv":["true"],"timeout":`+text+`}]}`)
		if what := problems(t, err)["steps[0].timeout"]; what == "" {
			t.Errorf("step timeout %s: %v", text, err)
		}
	}
	if s, err := parse(t, `{"steps":[{"argv":["true"]}],"timeouts":{"run":"3s"}}`); err != nil || s.Timeouts.Run != 3*time.Second {
		t.Errorf("3s became %v, %v", s.Timeouts.Run, err)
	}
}

func TestEveryProblemIsFoundAtOnceWithItsPlace(t *testing.T) {
	_, err := parse(t, `{
		"steps": [{"script": "x", "when": "sometimes", "env": {"A": "1", "B-": "2"}}, {"argv": ["true"], "script": "x"}],
		"env": {"FORGEYARD_X": "1"},
		"network": "wifi",
		"sandbox": {"kind": "jail"},
		"retry": {"on": ["exit", "rain"]},
		"secrets": [{"env": "T", "ref": "a/b@0"}],
		"inputs": [{"mount": "source", "tree": {"root": "b3:12"}, "mode": "rw"}]
	}`)
	got := problems(t, err)
	for _, path := range []string{
		"steps[0].when", "steps[0].env.B-", "steps[1]", "env.FORGEYARD_X", "network", "sandbox.kind",
		"retry.on[1]", "secrets[0].ref", "inputs[0].tree.root", "inputs[0].mode",
	} {
		if got[path] == "" {
			t.Errorf("nothing is said of %s", path)
		}
		delete(got, path)
	}
	if len(got) > 0 {
		t.Errorf("and then: %v", got)
	}
}

func TestASpecificationShownReadsBackTheSame(t *testing.T) {
	want, err := parse(t, `{
		"steps": [{"id": "a", "argv": ["go", "test"], "env": {"B": "2", "A": "1"}, "timeout": "90s", "when": "always",
			"allow_failure": {"exit_codes": [9, 3]}}],
		"env": {"X": "y"}, "secrets": [{"file": "key", "ref": "deploy/key@2"}],
		"outputs": [{"name": "out", "patterns": ["dist/**"], "max_bytes": "1MiB"}],
		"caches": [{"key": "go", "paths": ["home/.cache"]}],
		"resources": {"cpu": 0.5, "memory": "512MiB", "disk": 1000, "slots": 2}, "processes": 12, "network": "host",
		"sandbox": {"kind": "process"}, "constraints": {"os": "linux", "devices": [{"kind": "gpu", "count": 1}],
			"toolchains": [{"id": "go", "version": "1.26"}], "labels": ["big"], "pool": "p"},
		"timeouts": {"prepare": "1m", "run": "1h30m", "upload": "10s", "grace": "250ms"},
		"connectivity": {"mode": "continuous"}, "log_limit": "1GiB", "retry": {"max": 2, "on": ["oom", "exit"], "infra": 0}
	}`)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(SpecOf(&want))
	if err != nil {
		t.Fatal(err)
	}
	got, err := parse(t, string(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", text, diff)
	}
	if got.Resources.CPU != 500 || got.Retry.Infra != 0 || got.Retry.On[0] != forge.RetryExit || got.Connectivity.Extra != 0 {
		t.Errorf("read %+v", got)
	}
}

func TestUnknownTwiceAndWronglyTypedFieldsAreNamed(t *testing.T) {
	var r RunRequest
	err := Decode([]byte(`{"jobs":[{"key":1,"key":"a","spec":{"timeoutz":{},"steps":{},"processes":-1,"log_limit":true,"steps":[null]}}],"x":[]}`), &r)
	got := problems(t, err)
	want := map[string]string{
		"jobs[0].key":            "is there twice",
		"jobs[0].spec.timeoutz":  "is not known; did you mean timeouts?",
		"jobs[0].spec.processes": "-1 is no whole number that fits here",
		"jobs[0].spec.log_limit": "is true or false, not a text",
		"jobs[0].spec.steps":     "is an object, not a list",
		"jobs[0].spec.steps[0]":  "is null",
		"x":                      "is not known",
	}
	for path, what := range want {
		if path == "jobs[0].key" || path == "jobs[0].spec.steps" {
			if got[path] == "" {
				t.Errorf("nothing is said of %s", path)
			}
			continue
		}
		if got[path] != what {
			t.Errorf("%s: %q, not %q", path, got[path], what)
		}
	}
}

func TestTextThatIsNotOneValueIsMalformed(t *testing.T) {
	deep := strings.Repeat(`[`, 100)
	for _, text := range []string{``, `{`, `{"jobs":[}`, `{} {}`, `{}x`, `nul`, deep, "\xff", `{"a"}`, `{"jobs":` + deep} {
		var r RunRequest
		if err := Decode([]byte(text), &r); !errors.Is(err, ErrMalformed) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestUnitsReadWhatTheyWrite(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, 90 * time.Second, time.Hour, 36 * time.Hour, 20 * time.Minute, time.Hour + time.Second} {
		var back Duration
		if err := back.UnmarshalText([]byte(Duration(d).String())); err != nil || time.Duration(back) != d {
			t.Errorf("%v is written %s and read %v, %v", d, Duration(d), back, err)
		}
	}
	if s := Duration(20 * time.Minute).String(); s != "20m" {
		t.Errorf("20 minutes are written %s", s)
	}
	for text, want := range map[string]uint64{"0": 0, "1": 1, "4GiB": 4 << 30, "16 KiB": 16 << 10, "3B": 3, "16777215TiB": 16777215 << 40} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || uint64(s) != want {
			t.Errorf("%s is read as %d, %v", text, s, err)
		}
	}
	for _, text := range []string{"", "4GB", "-1", "1.5GiB", "16777216TiB", "GiB", "99999999999999999999", "1e3"} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, s)
		}
	}
	for text, want := range map[string]Cores{"2": 2000, "0.5": 500, "1.25": 1250, "0.001": 1} {
		var c Cores
		if err := c.UnmarshalText([]byte(text)); err != nil || c != want {
			t.Errorf("%s is read as %d, %v", text, c, err)
		}
	}
	for _, text := range []string{"", "-1", "0.0001", "1e3", ".5x", "3.", "99999999999"} {
		var c Cores
		if err := c.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q is read as %d", text, c)
		}
	}
}

// FuzzDecode holds that no request brings the decoder or the conversion down, and that what passes is valid.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"jobs":[{"key":"a","needs":[{"job":"b"}],"spec":{"steps":[{"script":"x","env":{"A":"b"}}]}}]}`))
	f.Add([]byte(`{"jobs":[{"spec":{"steps":[{"env":{"-":""}}],"env":{"":""},"inputs":[{}],"secrets":[{}],"retry":{"on":["x"]}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var r RunRequest
		if Decode(data, &r) != nil {
			return
		}
		for _, j := range r.Jobs {
			spec, err := j.Spec.Forge(inRun)
			if err == nil {
				err = spec.Validate()
				if err != nil {
					t.Errorf("an invalid specification passed: %v", err)
				}
			}
		}
	})
}
