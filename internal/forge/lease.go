package forge

import (
	"errors"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// JobSpecID is the identity of an immutable job specification: the digest of its exact bytes in the job
// specification context (07§228).
type JobSpecID digest.Digest

// SpecID returns the identity of a specification's exact bytes. The bytes travel; whoever receives them computes it
// again (07§228).
func SpecID(spec []byte) JobSpecID { return JobSpecID(digest.JobSpec.Sum(spec)) }

func (id JobSpecID) String() string { return digest.Digest(id).String() }

// IsZero reports whether id names no spec.
func (id JobSpecID) IsZero() bool { return id == JobSpecID{} }

// AttemptContext is the authority tuple that every message about a running attempt carries (07§36). A daemon acts only
// if all six match its rows in the transaction that makes the change.
type AttemptContext struct {
	Job     JobID
	Attempt AttemptID
	Lease   LeaseID
	Spec    JobSpecID
	Runner  RunnerID
	Session AgentSessionID
}

// Validate reports the first part that is missing.
func (c AttemptContext) Validate() error {
	switch {
	case c.Job.IsZero():
		return missing("job")
	case c.Attempt.IsZero():
		return missing("attempt")
	case c.Lease.IsZero():
		return missing("lease")
	case c.Spec.IsZero():
		return missing("spec")
	case c.Runner.IsZero():
		return missing("runner")
	case c.Session.IsZero():
		return missing("session")
	}
	return nil
}

// ErrInvalid is the kind of every validation error of this package.
var ErrInvalid = errors.New("invalid")

func missing(what string) error { return fmt.Errorf("%w: %s is missing", ErrInvalid, what) }

func invalid(what string, value any) error {
	return fmt.Errorf("%w: %s %v is out of range", ErrInvalid, what, value)
}

// LeasePolicy is the time scale of leases. It is configured on the daemon and told to the agent in every registration
// (D08), so that both count with the same numbers and tests can run scaled.
type LeasePolicy struct {
	TTL       time.Duration // of a lease with continuous connectivity
	Grace     time.Duration // default extra time of a lease that may outlive a short disconnect
	Renew     time.Duration // mean interval of heartbeats; each is jittered by ±20 %
	Margin    time.Duration // least extra time that a daemon watches before it expires a lease
	KillLead  time.Duration // how long before the deadline the kill starts
	SoftGrace time.Duration // from the soft signal to the hard kill; less than KillLead
	OfferTTL  time.Duration // how long an offer stands
	Request   time.Duration // how long an agent waits for an answer before it reconnects
}

// MinHardTTL is the shortest time that a lease may live between renewals.
const MinHardTTL = 6 * time.Second

// DefaultLeasePolicy is used where nothing is configured.
func DefaultLeasePolicy() LeasePolicy {
	return LeasePolicy{
		TTL: 60 * time.Second, Grace: 60 * time.Second, Renew: 15 * time.Second, Margin: 2 * time.Second,
		KillLead: 3 * time.Second, SoftGrace: 2 * time.Second, OfferTTL: 10 * time.Second, Request: 10 * time.Second,
	}
}

// Validate checks that the durations can work together.
func (p LeasePolicy) Validate() error {
	switch {
	case p.TTL < MinHardTTL || p.TTL > 24*time.Hour:
		return invalid("lease.ttl", p.TTL)
	case p.Grace < 0 || p.Grace > 7*24*time.Hour:
		return invalid("lease.grace", p.Grace)
	case p.Renew <= 0 || p.Renew > p.TTL/4:
		return fmt.Errorf("%w: lease.renew %v must be positive and at most a quarter of lease.ttl", ErrInvalid, p.Renew)
	case p.Margin < 2*time.Second:
		return invalid("lease.margin", p.Margin)
	case p.SoftGrace <= 0 || p.KillLead <= p.SoftGrace || p.KillLead > p.TTL/2:
		return fmt.Errorf("%w: lease.kill_lead %v must be longer than the soft grace %v and at most half of lease.ttl",
			ErrInvalid, p.KillLead, p.SoftGrace)
	case p.OfferTTL <= 0 || p.OfferTTL > time.Hour:
		return invalid("lease.offer_ttl", p.OfferTTL)
	case p.Request <= 0 || p.Request > time.Hour:
		return invalid("lease.request", p.Request)
	}
	return nil
}

// ClockSlack is the part of a duration by which two honest clocks may differ over it: rates are within 2 % of true.
func ClockSlack(d time.Duration) time.Duration { return d / 50 }

// Watch is how long a daemon must itself have seen a counter stand still before it may conclude that its owner is gone.
func (p LeasePolicy) Watch(ttl time.Duration) time.Duration {
	return ttl + max(ClockSlack(ttl), p.Margin)
}

// Connectivity says how long a lease outlives its connection (07§112).
type Connectivity uint8

// The connectivity policies.
const (
	Continuous        Connectivity = 1
	GracePeriod       Connectivity = 2
	OfflineAuthorized Connectivity = 3 // only where pool policy and pipeline both say so
)

// HardTTL is the time that one renewal grants under a connectivity policy. extra is the duration of a grace or of an
// authorized offline period; the policy is already inside, neither side adds to it.
func (p LeasePolicy) HardTTL(c Connectivity, extra time.Duration) time.Duration {
	switch c {
	case GracePeriod:
		return p.TTL + extra
	case OfflineAuthorized:
		return max(p.TTL, extra)
	default:
		return p.TTL
	}
}

// Connectivity is how long a job outlives its connection whose author does not say.
func (p LeasePolicy) Connectivity() ConnectivityPolicy {
	if p.Grace == 0 {
		return ConnectivityPolicy{Mode: Continuous}
	}
	return ConnectivityPolicy{Mode: GracePeriod, Extra: p.Grace}
}

// RejectReason says why an agent does not take a lease (07§33).
type RejectReason uint8

// The reasons of a rejection. Zero, or a reason that this build does not know, reads as Other.
const (
	RejectOther             RejectReason = 1
	RejectDraining          RejectReason = 2
	RejectResourcePressure  RejectReason = 3
	RejectCapabilityChanged RejectReason = 4
	RejectDiskInsufficient  RejectReason = 5
	RejectUnsupportedSpec   RejectReason = 6
	RejectLocalPolicy       RejectReason = 7
	RejectPreparation       RejectReason = 8
	RejectSpecMismatch      RejectReason = 9 // the bytes are not those of the spec's id
	RejectAlreadyTaken      RejectReason = 10
)

var rejectNames = []string{
	"", "Other", "Draining", "ResourcePressure", "CapabilityChanged", "DiskInsufficient", "UnsupportedSpec",
	"LocalPolicy", "InternalPreparationFailure", "SpecMismatch", "AlreadyTaken",
}

func (r RejectReason) String() string { return name(rejectNames, uint8(r)) }

// RefuseReason says why a daemon does not grant an acceptance.
type RefuseReason uint8

// The reasons of a refused acceptance.
const (
	RefusedUnknown    RefuseReason = 1
	RefusedCancelled  RefuseReason = 2
	RefusedExpired    RefuseReason = 3
	RefusedSuperseded RefuseReason = 4
)

var refuseNames = []string{"", "Unknown", "Cancelled", "Expired", "Superseded"}

func (r RefuseReason) String() string { return name(refuseNames, uint8(r)) }

// CancelReason says why a workload is to stop. Only CancelUser can make a job Cancelled.
type CancelReason uint8

// The reasons of a cancel. Zero means that there is none.
const (
	CancelNone        CancelReason = 0
	CancelUser        CancelReason = 1
	CancelMaxLifetime CancelReason = 2
	CancelDisabled    CancelReason = 3 // the runner was disabled or revoked
)

var cancelNames = []string{"None", "User", "MaxLifetime", "RunnerDisabled"}

func (r CancelReason) String() string { return name(cancelNames, uint8(r)) }
