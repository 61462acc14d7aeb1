//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// good is a job with a lost attempt and one whose result was recorded.
func good() observedJob {
	return observedJob{
		name: "a", ended: true, succeeded: true, sum: "sum", artifacts: []observedArtifact{{attempt: "y", content: "y sum\n"}},
		attempts: []observedAttempt{
			{id: "x", number: 1, ended: true, lost: true, started: true, transcript: []byte("one\ntwo\n"), log: []byte("one\n"), first: 10, last: 20},
			{
				id: "y", number: 2, ended: true, accepted: true, decided: true, logSealed: true, started: true,
				transcript: []byte("one\n"), log: []byte("one\n"), first: 21, last: 30,
			},
		},
	}
}

func TestAnHonestRunHasNoViolation(t *testing.T) {
	if found := check([]observedJob{good()}); len(found) != 0 {
		t.Errorf("check(good) = %v", found)
	}
}

func TestAKilledWorkloadMayHaveToldOfOneLineThatItDidNotPrint(t *testing.T) {
	j := good()
	j.attempts[1].cut, j.attempts[1].transcript = true, []byte("one\ntwo\n")
	if found := check([]observedJob{j}); len(found) != 0 {
		t.Errorf("found %v", found)
	}
}

func TestEachBrokenInvariantIsFound(t *testing.T) {
	tests := []struct {
		invariant string
		breakIt   func(*observedJob)
	}{
		{"I07", func(j *observedJob) { j.ended = false }},
		{"I07", func(j *observedJob) { j.attempts[0].ended = false }},
		{"I03", func(j *observedJob) {
			j.attempts[0].decided = true
		}},
		{"I03", func(j *observedJob) { j.attempts[1].decided = false }},
		{"I08", func(j *observedJob) { j.attempts[1].log = nil }},
		{"I08", func(j *observedJob) { j.attempts[1].logSealed = false }},
		{"I08", func(j *observedJob) { j.attempts[0].log = []byte("two\n") }},
		{"I08", func(j *observedJob) { j.attempts[0].log = []byte("one\ntwo\ntwo\n") }},
		{"I08", func(j *observedJob) { j.attempts[1].cut, j.attempts[1].transcript = true, []byte("one\ntwo\nthree\n") }},
		{"I01", func(j *observedJob) { j.attempts[1].first = 20 }},
		{"bytes", func(j *observedJob) { j.artifacts = nil }},
		{"bytes", func(j *observedJob) { j.artifacts = append(j.artifacts, j.artifacts[0]) }},
		{"bytes", func(j *observedJob) { j.artifacts[0].attempt = "x" }},
		{"bytes", func(j *observedJob) { j.artifacts[0].content = "y other\n" }},
		{"cancel", func(j *observedJob) {
			j.cancelled, j.cancelAt = true, 1
			j.attempts[1].first = forge.Instant(6e9)
			j.attempts[1].last = forge.Instant(7e9)
		}},
	}
	for _, test := range tests {
		j := good()
		test.breakIt(&j)
		found := check([]observedJob{j})
		if len(found) == 0 || !strings.HasPrefix(found[0].String(), test.invariant+": ") {
			t.Errorf("want a violation of %s, got %v", test.invariant, found)
		}
	}
}
