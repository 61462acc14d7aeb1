package lifecycle_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

func TestAJobThatEndedNeverComesBack(t *testing.T) {
	ended := []forge.JobState{forge.JobSucceeded, forge.JobFailed, forge.JobCancelled, forge.JobSkipped}
	for _, e := range lifecycle.Job.Edges() {
		for _, s := range ended {
			if to, err := lifecycle.Job.Next(s, e.Event); err == nil {
				t.Errorf("%v: %s makes it %v", s, e.Event, to)
			}
		}
	}
}

func TestAJobIsOfferedOnlyWhileItIsReady(t *testing.T) {
	for s := forge.JobWaiting; s <= forge.JobSkipped; s++ {
		if can := lifecycle.Job.Can(s, lifecycle.JobOffer); can != (s == forge.JobReady) {
			t.Errorf("%v: may be offered: %v", s, can)
		}
	}
}

func TestAJobThatIsNotOverCanBeCancelled(t *testing.T) {
	for s := forge.JobWaiting; s <= forge.JobSkipped; s++ {
		if can := lifecycle.Job.Can(s, lifecycle.JobCancel); can == s.Ended() {
			t.Errorf("%v: may be cancelled: %v", s, can)
		}
	}
}

func TestAnEndedLeaseHasNoWayOut(t *testing.T) {
	ended := []forge.LeaseState{forge.LeaseReleased, forge.LeaseRefused, forge.LeaseRevoked, forge.LeaseExpired, forge.LeaseLost}
	for _, e := range lifecycle.Lease.Edges() {
		for _, s := range ended {
			if to, err := lifecycle.Lease.Next(s, e.Event); err == nil {
				t.Errorf("%v: %s makes it %v", s, e.Event, to)
			}
		}
	}
}

func TestALeaseIsAcceptedOnceAndOnlyFromAnOffer(t *testing.T) {
	for s := forge.LeaseOffered; s <= forge.LeaseLost; s++ {
		if can := lifecycle.Lease.Can(s, lifecycle.LeaseAccept); can != (s == forge.LeaseOffered) {
			t.Errorf("%v: may be accepted: %v", s, can)
		}
	}
}

func TestOnlyAnOfferIsRevokedAndOnlyWhatRunsIsReleasedOrLost(t *testing.T) {
	for event, only := range map[lifecycle.Event]forge.LeaseState{
		lifecycle.LeaseRevoke: forge.LeaseOffered, lifecycle.LeaseRelease: forge.LeaseAccepted, lifecycle.LeaseLose: forge.LeaseAccepted,
	} {
		for s := forge.LeaseOffered; s <= forge.LeaseLost; s++ {
			if can := lifecycle.Lease.Can(s, event); can != (s == only) {
				t.Errorf("%v: may %s: %v", s, event, can)
			}
		}
	}
}

func TestPhasesOnlyGoForwardAndEachMayBeSkipped(t *testing.T) {
	for from := forge.AttemptOffered; from <= forge.AttemptRefused; from++ {
		for to := forge.AttemptPreparing; to <= forge.AttemptCompleting; to++ {
			event, ok := lifecycle.Phase(to)
			if !ok {
				t.Fatalf("%v is no phase", to)
			}
			got, err := lifecycle.Attempt.Next(from, event)
			if forward := from >= forge.AttemptAccepted && from < to; forward != (err == nil) || forward && got != to {
				t.Errorf("%s in %v: %v, %v", event, from, got, err)
			}
		}
	}
}

func TestOnlyPhasesThatAnAgentReportsArePhases(t *testing.T) {
	for _, s := range []forge.AttemptState{
		0, forge.AttemptOffered, forge.AttemptAccepted, forge.AttemptSucceeded, forge.AttemptFailed,
		forge.AttemptCancelled, forge.AttemptLost, forge.AttemptRefused, 99,
	} {
		if event, ok := lifecycle.Phase(s); ok {
			t.Errorf("%v is reported by %s", s, event)
		}
	}
}

func TestAHeldAttemptCanEndInWhateverStateItsOutcomeNames(t *testing.T) {
	for _, class := range forge.Classes() {
		event := lifecycle.Terminal(class.AttemptState())
		for s := forge.AttemptAccepted; s <= forge.AttemptCompleting; s++ {
			if to, err := lifecycle.Attempt.Next(s, event); err != nil || to != class.AttemptState() {
				t.Errorf("%v of %v: %v, %v", class, s, to, err)
			}
		}
	}
}

func TestAnAttemptIsRefusedOnlyBeforeItsWorkloadStarts(t *testing.T) {
	event := lifecycle.Terminal(forge.AttemptRefused)
	for s := forge.AttemptOffered; s <= forge.AttemptRefused; s++ {
		if can := lifecycle.Attempt.Can(s, event); can != (s < forge.AttemptRunning) {
			t.Errorf("%v: may be refused: %v", s, can)
		}
	}
}
