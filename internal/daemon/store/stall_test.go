package store

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// leased makes a runner that holds one accepted lease, and returns the fence and the lease.
func leased(t *testing.T, s *Store, policy forge.LeasePolicy) (authority.Fence, forge.AttemptContext) {
	t.Helper()
	runner, job := forge.RunnerID{ULID: forge.ULID{1}}, forge.JobID{ULID: forge.ULID{2}}
	fence := authority.Fence{Runner: runner, Session: forge.AgentSessionID{ULID: forge.ULID{3}}, TransportSeq: 1}
	spec := []byte("spec")
	run := NewRun{ID: forge.RunID{ULID: forge.ULID{4}}, Project: "p", Trust: forge.TrustTrusted, Jobs: []NewJob{{
		ID: job, Key: "j", Draft: forge.SpecID(spec), Bytes: spec,
		Terms: Terms{HardTTL: policy.HardTTL(forge.GracePeriod, policy.Grace), MaxLifetime: time.Hour},
	}}}
	offer := &authority.Offer{Fence: fence, Job: job, Attempt: forge.AttemptID{ULID: forge.ULID{5}}, Lease: forge.LeaseID{ULID: forge.ULID{6}}}
	var c forge.AttemptContext
	err := s.Update(t.Context(), ClassState, func(tx *Tx) error {
		if err := tx.CreateRunner(NewRunner{ID: runner, Name: "r", Pool: "default", Trust: forge.TrustTrusted, Slots: 1}); err != nil {
			return err
		}
		if _, _, err := tx.CreateRun(run); err != nil {
			return err
		}
		if err := tx.Settle(run.ID, func(_ Run, jobs []Job) Settlement {
			return Settlement{Plan: []Planned{{Plan: authority.Plan{Job: jobs[0].ID, Spec: jobs[0].Draft}}}}
		}); err != nil {
			return err
		}
		if _, err := tx.Do(&authority.Register{Runner: runner, Session: fence.Session, StartCounter: 1, TransportSeq: 1}); err != nil {
			return err
		}
		answer, err := tx.Do(offer)
		if err != nil {
			return err
		}
		c = answer.Context
		_, err = tx.Do(&authority.Claim{Fence: fence, Context: c, Phase: forge.AttemptOffered})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fence, c
}

// countWarnings is a log that counts what somebody should look at.
type countWarnings struct {
	slog.Handler
	n    atomic.Int64
	many chan struct{} // closed at the third
}

func (c *countWarnings) Enabled(context.Context, slog.Level) bool { return true }

func (c *countWarnings) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelWarn && c.n.Add(1) == 3 {
		close(c.many)
	}
	return nil
}

// A stall of 20 s loses no lease: somebody else holds the database, for longer than the writer's patience for one try, while
// a heartbeat waits behind a thousand requests that matter less. The clock of the story is the story's own.
func TestAStallOfTheDatabaseLosesNoLease(t *testing.T) {
	warnings := &countWarnings{many: make(chan struct{})}
	s, err := open(t.Context(), t.TempDir(), Options{Log: slog.New(warnings)}.withDefaults(), hooks{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	policy := forge.DefaultLeasePolicy()
	fence, c := leased(t, s, policy)
	watch, now := authority.NewWatch(policy), forge.Instant(time.Hour)
	look := func() {
		snap, err := s.Snapshot(t.Context(), forge.RunnerID{})
		if err != nil {
			t.Fatal(err)
		}
		watch.SeeAll(now, snap.Leases)
	}
	look()
	if err := s.Update(t.Context(), ClassRest, func(tx *Tx) error {
		var n int64
		_, err := tx.find("PRAGMA busy_timeout(1)", nil, num(&n)) // so that one try is short
		return err
	}); err != nil {
		t.Fatal(err)
	}

	now = now.Add(100 * time.Second) // the last heartbeat was long ago: 22 s are left
	other, err := connect(t.Context(), s.dir.database(), writing)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.exec(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	h := &held{Store: s}
	restBefore := false
	var requests []*request
	for range 1000 {
		requests = append(requests, h.queued(t, ClassRest, event("rest")))
	}
	var answer authority.Answer
	heartbeat := h.queued(t, ClassLease, func(tx *Tx) (err error) {
		events, _, err := tx.Audits(0, 1)
		if err != nil {
			return err
		}
		restBefore = len(events) > 0
		answer, err = tx.Do(&authority.Heartbeat{
			Fence: fence, Leases: []forge.LeaseID{c.Lease}, Watched: []authority.Watched{watch.Lease(now, c.Lease)},
		})
		return err
	})
	<-warnings.many // the writer has given a try up three times
	now = now.Add(20 * time.Second)
	look() // reading goes on meanwhile
	if _, err := other.exec(t.Context(), "ROLLBACK"); err != nil {
		t.Fatal(err)
	}
	<-heartbeat.done
	if heartbeat.err != nil || len(answer.Verdicts) != 1 || answer.Verdicts[0].Verdict != forge.VerdictContinue {
		t.Errorf("the heartbeat got %+v, %v", answer, heartbeat.err)
	}
	if restBefore {
		t.Error("requests that matter less went before it")
	}
	look()
	now = now.Add(30 * time.Second)
	if due := watch.Due(now, nil); len(due) > 0 {
		t.Errorf("the daemon would expire %+v", due[0])
	}
	for _, r := range requests {
		<-r.done
		if r.err != nil {
			t.Fatal(r.err)
		}
	}
	if err := other.close(); err != nil {
		t.Error(err)
	}
}

// The rules never open two leases on a job; should one ever try, the database refuses.
func TestTheDatabaseItselfAllowsOneOpenLeaseOfAJob(t *testing.T) {
	s := hooked(t, hooks{})
	_, c := leased(t, s, forge.DefaultLeasePolicy())
	second := authority.Lease{Context: c, State: forge.LeaseOffered}
	second.Context.Lease, second.Context.Attempt = forge.LeaseID{ULID: forge.ULID{7}}, forge.AttemptID{ULID: forge.ULID{8}}
	insert := func(state forge.LeaseState) error {
		return s.Update(t.Context(), ClassState, func(tx *Tx) error {
			w := work{rows: authority.Rows{Attempt: authority.Row[authority.Attempt]{
				Value: authority.Attempt{ID: second.Context.Attempt, Job: c.Job, Number: 2},
			}}}
			if err := tx.storeAttempt(&w); err != nil {
				return err
			}
			second.State = state
			return tx.storeLease(&authority.Row[authority.Lease]{Value: second})
		})
	}
	if err := insert(forge.LeaseOffered); !errors.Is(err, ErrExists) {
		t.Errorf("a second open lease: %v", err)
	}
	if err := insert(forge.LeaseExpired); err != nil {
		t.Errorf("a lease that has ended: %v", err)
	}
}
