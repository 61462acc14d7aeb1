package lifecycle_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

func TestAnIllegalTransitionIsATypedErrorThatNamesMachineStateAndEvent(t *testing.T) {
	for _, m := range machines() {
		illegal := 0
		for state, name := range m.names {
			for _, event := range append(m.events, "no such event") {
				to, err := m.next(state, event)
				if err == nil {
					continue
				}
				illegal++
				var got *lifecycle.IllegalTransition
				if !errors.As(err, &got) {
					t.Fatalf("%s: %s in %s: %T, want an *IllegalTransition", m.name, event, name, err)
				}
				if diff := cmp.Diff(&lifecycle.IllegalTransition{Machine: m.name, From: name, Event: event}, got); diff != "" {
					t.Errorf("%s: %s in %s:\n%s", m.name, event, name, diff)
				}
				if to != state {
					t.Errorf("%s: the illegal %s moved %s to number %d", m.name, event, name, to+1)
				}
			}
		}
		if illegal == 0 {
			t.Errorf("%s forbids nothing", m.name)
		}
	}
}

func TestAnIllegalTransitionReadsAsASentence(t *testing.T) {
	_, err := lifecycle.Job.Next(forge.JobSucceeded, lifecycle.JobOffer)
	if want := "job cannot offer while Succeeded"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %q", err, want)
	}
}

func TestAStateThatNobodyKnowsAllowsNothing(t *testing.T) {
	for _, m := range machines() {
		for _, unknown := range []int{-1, len(m.names), 200} {
			for _, event := range m.events {
				if m.can(unknown, event) {
					t.Errorf("%s allows %s in state number %d", m.name, event, unknown+1)
				}
			}
		}
	}
}

func TestCanAgreesWithNext(t *testing.T) {
	for _, m := range machines() {
		for state, name := range m.names {
			for _, event := range m.events {
				if _, err := m.next(state, event); m.can(state, event) != (err == nil) {
					t.Errorf("%s: Can and Next disagree about %s in %s", m.name, event, name)
				}
			}
		}
	}
}

func TestWhatIsOverNeverComesBack(t *testing.T) {
	for _, m := range machines() {
		for state, name := range m.names {
			if after := m.reach(state); m.ended[state] && len(after) > 1 {
				t.Errorf("%s: %s is over and can still become %s", m.name, name, m.names[after[1]])
			}
		}
	}
}

func TestWhatIsNotOverCanEnd(t *testing.T) {
	for _, m := range machines() {
		for state, name := range m.names {
			if !slices.ContainsFunc(m.reach(state), func(s int) bool { return m.ended[s] }) {
				t.Errorf("%s can hang in %s for ever", m.name, name)
			}
		}
	}
}

func TestEveryStateCanBeReached(t *testing.T) {
	for _, m := range machines() {
		reached := m.reach(0)
		for state, name := range m.names {
			if !slices.Contains(reached, state) {
				t.Errorf("%s never gets to %s", m.name, name)
			}
		}
	}
}
