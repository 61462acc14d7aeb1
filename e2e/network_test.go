//go:build linux

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/relay"
)

// relayed adds an agent behind a relay of its own.
func (s *story) relayed(name string, slots int) (*fleet.Agent, *fleet.Road) {
	s.t.Helper()
	road, err := s.fleet.Road(1)
	s.must(err)
	return s.agent(name, slots, road.Addr()), road
}

// Cases B57, T04: ten cuts while 200,000 lines are on their way. Each arrives once and in order.
func TestTenCutsLoseNoLineAndDoubleNone(t *testing.T) {
	s := newStory(t)
	_, road := s.relayed("one", 1)
	s.must(road.Set(relay.Settings{Rate: 200 << 10})) // so that the 1.3 MB take longer than the cuts
	run, job := s.shell("seq 200000")
	a := s.attempt(job, forge.AttemptRunning, forge.AttemptUploading, forge.AttemptCompleting)
	for i := range 10 {
		stored := s.storedAtLeast(a.ID, (i+1)*60_000)
		road.Break()
		stayCut(s, 300*time.Millisecond)
		road.Mend()
		t.Logf("cut %d at %d stored bytes", i+1, stored)
	}
	ended := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	if ended.ID != a.ID {
		t.Errorf("it ended with another attempt, %s", ended.ID)
	}
	var want strings.Builder
	for i := range 200_000 {
		fmt.Fprintln(&want, i+1)
	}
	if got := s.log(a.ID); got != want.String() {
		t.Errorf("the log has %d bytes and %d lines, want %d bytes and 200000 lines", len(got), strings.Count(got, "\n"), want.Len())
	}
}

// storedAtLeast waits until the daemon has so many bytes of a log, or all of it.
func (s *story) storedAtLeast(attempt string, bytes int) (stored uint64) {
	s.t.Helper()
	s.must(fleet.Await(s.ctx, fmt.Sprintf("%d bytes of the log to be stored", bytes), func() (bool, error) {
		a, err := s.client.Attempt(s.ctx, attempt)
		if err != nil || a.Log == nil {
			return false, err
		}
		stored = a.Log.Bytes
		return stored >= uint64(bytes) || a.Log.Sealed, nil
	}))
	return stored
}

// stayCut lets a cut last. Nothing announces the end of a time in which nothing can happen.
func stayCut(s *story, d time.Duration) {
	select {
	case <-time.After(d):
	case <-s.ctx.Done():
		s.t.Fatal(s.ctx.Err())
	}
}

// Cases B20, T17, T21, T40: a cut that is shorter than the lease changes nothing but the time of arrival.
func TestAShortCutChangesNothing(t *testing.T) {
	s := newStory(t)
	_, road := s.relayed("one", 1)
	transcript := s.path("transcript")
	run, job := s.shell(counting(100, transcript), func(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(0))} })
	a := s.attempt(job, forge.AttemptRunning)
	for range 2 {
		road.Break()
		stayCut(s, fleet.Fast.TTL/4)
		road.Mend()
		stayCut(s, fleet.Fast.TTL/8)
	}
	ended := s.ended(run)
	if got := classOf(t, ended, "Succeeded", "Succeeded"); got.ID != a.ID || len(ended.AllAttempts) != 1 {
		t.Errorf("it took %d attempts", len(ended.AllAttempts))
	}
	if want := s.file(transcript); s.log(a.ID) != want {
		t.Errorf("the log has %d bytes, the transcript %d", len(s.log(a.ID)), len(want))
	}
}

// Case B19: cut off for longer than its lease, an agent has ended its workload before anybody else may begin.
func TestAnAgentThatIsCutOffEndsItsWorkBeforeItIsGivenAway(t *testing.T) {
	s := newStory(t)
	_, road := s.relayed("cut", 1)
	begun, alive := s.path("begun"), s.path("alive")
	script := `now() { date +%s.%N; }; note begun.$FORGEYARD_ATTEMPT_ID $(now)
		while :; do at=$(now); ask 'put alive.%s %d\n%s\n' $FORGEYARD_ATTEMPT_ID $((${#at}+1)) $at; sleep 0.02; done`
	run, job := s.shell(script, func(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(1))} })
	first := s.attempt(job, forge.AttemptRunning)
	s.file(alive + "." + first.ID)
	road.Break()
	s.agent("other", 1, "")
	var other string
	s.must(fleet.Await(s.ctx, "the second attempt to run", func() (bool, error) {
		j, err := s.client.Job(s.ctx, job)
		if err != nil || len(j.AllAttempts) < 2 {
			return false, err
		}
		other = j.AllAttempts[1].ID
		return j.AllAttempts[1].State == forge.AttemptRunning.String(), nil
	}))
	second := s.file(begun + "." + other)
	if last := s.file(alive + "." + first.ID); last >= second {
		t.Errorf("the first workload was alive at %s, after the second had begun (%s)", last, second)
	}
	_, err := s.client.CancelRun(s.ctx, run.ID)
	s.must(err)
	road.Mend()
	ended := s.ended(run)
	if a := ended.AllAttempts[0]; a.ID != first.ID || a.State != "Lost" {
		t.Errorf("the first attempt is %s %s, want %s Lost", a.ID, a.State, first.ID)
	}
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
}

// Cases T36, B98: loss, another order, duplicates and a short MTU slow a job down and do no more.
func TestABadRoadDeliversTheWholeLog(t *testing.T) {
	s := newStory(t)
	_, road := s.relayed("one", 1)
	s.must(road.Set(relay.Settings{Loss: 0.05, Duplicate: 0.05, Reorder: 0.1, Delay: 5 * time.Millisecond, Jitter: 10 * time.Millisecond, MTU: 1280}))
	run, _ := s.shell("seq 50000")
	a := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	if lines := strings.Count(s.log(a.ID), "\n"); lines != 50_000 {
		t.Errorf("%d lines, want 50000", lines)
	}
}

// A NAT that forgets its clients every so often ends neither a job nor the connection (09§3: address changes).
func TestANewAddressOfTheAgentDoesNotEndItsJob(t *testing.T) {
	s := newStory(t)
	_, road := s.relayed("one", 1)
	transcript := s.path("transcript")
	run, job := s.shell(counting(60, transcript), func(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(0))} })
	s.attempt(job, forge.AttemptRunning)
	before := s.session()
	s.must(road.Rebind())
	ended := s.ended(run)
	a := classOf(t, ended, "Succeeded", "Succeeded")
	if after := s.session(); after != before {
		t.Errorf("the agent came by connection %s and is there by %s", before, after)
	}
	if want := s.file(transcript); s.log(a.ID) != want {
		t.Errorf("the log has %d bytes, the transcript %d", len(s.log(a.ID)), len(want))
	}
}
