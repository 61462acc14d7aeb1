package enroll

import (
	"context"
	"errors"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// What a Store answers instead. Whoever asks tests for them with errors.Is. Any other error means that the fate of the
// change is not known, or that nothing was looked up; asking again is always harmless.
var (
	ErrTokenUnknown   = errors.New("this enrolment token is not known") // also one that was taken back
	ErrTokenUsed      = errors.New("this enrolment token was used for another key")
	ErrTokenExpired   = errors.New("this enrolment token has expired")
	ErrKeyTaken       = errors.New("this key belongs to another runner")
	ErrKeyUnknown     = errors.New("this key belongs to no runner")
	ErrRunnerDisabled = errors.New("this runner is disabled")
	ErrRunnerRevoked  = errors.New("this runner is revoked")
	ErrSuperseded     = errors.New("this certificate was superseded by a newer one that is in use")
)

// Store is what enrolment needs of the daemon's tables. Each method is one transaction, durable before it returns. They
// may be called from many goroutines at once. Times are wall clock readings in UTC.
type Store interface {
	// RedeemToken uses a token up for a key, exactly once, and returns the runner that the token makes or is bound to; the
	// key is bound to that runner in the same transaction, in place of one that the runner had before.
	//
	// It is idempotent by the key: the same hash with the same key gives the same runner again, even after the token has
	// expired, since the answer to the first time may have been lost. The checks, in this order: ErrTokenUnknown;
	// used by another key, ErrTokenUsed; not used and r.Now is not before its end, ErrTokenExpired; the key is bound to a
	// runner other than that of the token, ErrKeyTaken; the runner is revoked or disabled, ErrRunnerRevoked or
	// ErrRunnerDisabled. Whatever is refused changes nothing. Of two at once with different keys exactly one gets a runner.
	RedeemToken(ctx context.Context, r Redemption) (Grant, error)

	// RunnerByKey finds the runner that a key is bound to, or ErrKeyUnknown. A disabled or revoked one is returned too.
	RunnerByKey(ctx context.Context, key trust.KeyID) (Runner, error)

	// RecordCertificate writes down a certificate before anybody gets it. A serial that is there already changes nothing.
	// A runner that was revoked meanwhile gives ErrRunnerRevoked, one whose key is another one now ErrKeyUnknown.
	RecordCertificate(ctx context.Context, c Certificate) error

	// UseCertificate notes that a runner has proved a certificate on a connection that registers. With its first use, all
	// certificates of the runner that were recorded before it are superseded; until then the older ones stay good, since
	// the agent may never have got the newer one. ErrSuperseded is for one that was superseded, ErrRunnerRevoked and
	// ErrRunnerDisabled for its runner. A serial that is not recorded is recorded now and Unrecorded says so: the tables were
	// restored from an older copy, and that wants an audit event. Idempotent.
	UseCertificate(ctx context.Context, c Certificate, now time.Time) (Use, error)
}

// Redemption is an attempt to use a token.
type Redemption struct {
	Token trust.TokenHash
	Key   trust.KeyID
	Name  string // that the agent would like; at most agentv1.MaxRunnerName bytes, may be empty. Only a wish
	Now   time.Time
}

// Grant is what a redeemed token gives.
type Grant struct {
	Runner forge.RunnerID
	Name   string // that the runner has now
	Again  bool   // the same key has redeemed the token before
}

// Runner is what is known of the owner of a key.
type Runner struct {
	ID       forge.RunnerID
	Disabled bool
	Revoked  bool
	NotAfter time.Time // the end of its last certificate; zero where it never had one
}

// Certificate is one that was given to a runner. Nothing in it is secret (09§204).
type Certificate struct {
	Serial    trust.Serial
	Runner    forge.RunnerID
	Key       trust.KeyID
	NotBefore time.Time
	NotAfter  time.Time
}

// Use is what came of the use of a certificate.
type Use struct {
	First      bool // it was not in use before
	Unrecorded bool
}
