package enroll

import (
	"context"
	"errors"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// EventKind names an audit event (09§279).
type EventKind string

// The events. The table of protocols/internal/security.md has the same.
const (
	EventEnrolled       EventKind = "runner.enrolled"
	EventRecovered      EventKind = "certificate.recovered"
	EventRenewed        EventKind = "certificate.renewed"
	EventUnrecorded     EventKind = "certificate.unrecorded"
	EventEnrolRefused   EventKind = "enrolment.refused"
	EventRenewalRefused EventKind = "renewal.refused"
)

// Events lists every kind.
func Events() []EventKind {
	return []EventKind{
		EventEnrolled, EventRecovered, EventRenewed, EventUnrecorded, EventEnrolRefused, EventRenewalRefused,
	}
}

// Event is something that somebody may have to look at later. It holds no secret.
type Event struct {
	Kind   EventKind
	Runner forge.RunnerID // zero where none is known
	Key    trust.KeyID    // that was proved; zero where none was
	Serial trust.Serial   // of the certificate, where there is one
	Reason forge.CloseReason
	Why    string
	Addr   string // where it came from; for diagnostics, no identity (09§205)
}

// addrKey carries the peer's address to the event.
type addrKey struct{}

// WithAddr makes events say where a request came from.
func WithAddr(ctx context.Context, addr string) context.Context {
	return context.WithValue(ctx, addrKey{}, addr)
}

// AddrOf returns what WithAddr has put there.
func AddrOf(ctx context.Context) string {
	addr, _ := ctx.Value(addrKey{}).(string)
	return addr
}

// refusals says for each error what a peer hears of it.
var refusals = []struct {
	err    error
	reason forge.CloseReason
	text   string
}{
	{ErrTokenUnknown, forge.CloseAuthFailed, "this enrolment token is not known here; make another one"},
	{ErrTokenUsed, forge.CloseAuthFailed, "this enrolment token was used already; make another one"},
	{ErrTokenExpired, forge.CloseAuthFailed, "this enrolment token has expired; make another one"},
	{ErrOtherCluster, forge.CloseAuthFailed, "this enrolment token is of another cluster; check the address"},
	{trust.ErrTokenTypo, forge.CloseAuthFailed, "this enrolment token was not copied whole; copy it again"},
	{trust.ErrTokenVersion, forge.CloseAuthFailed, "this enrolment token is of another version; make it with this daemon"},
	{trust.ErrNoToken, forge.CloseAuthFailed, "this is no enrolment token"},
	{ErrKeyTaken, forge.CloseAuthFailed, "this agent's key belongs to another runner; remove the agent's folder of keys and enrol again"},
	{ErrKeyUnknown, forge.CloseAuthFailed, "this agent's key is not known here; enrol it with a token"},
	{ErrTooLate, forge.CloseAuthFailed, "this runner's certificate expired too long ago; enrol it with a token"},
	{ErrOtherKey, forge.CloseAuthFailed, "a renewal keeps its key"},
	{ErrOtherRunner, forge.CloseRoleViolation, "this certificate is of another runner"},
	{trust.ErrIdentity, forge.CloseAuthFailed, "this certificate is not that of a runner"},
	{trust.ErrRequest, forge.CloseAuthFailed, "the certificate request does not prove its key"},
	{ErrSuperseded, forge.CloseFenced, "a newer certificate of this runner is in use"},
	{ErrRunnerDisabled, forge.CloseRunnerDisabled, "this runner is disabled"},
	{ErrRunnerRevoked, forge.CloseRevoked, "this runner is revoked"},
}

// Refuse says with what a connection is closed after an error of Desk, and the message that goes before: a close code
// may be lost, and people want a sentence. What is our own fault is said as internal, without a cause.
func Refuse(err error) (forge.CloseReason, *forge.Error) {
	for _, r := range refusals {
		if errors.Is(err, r.err) {
			return r.reason, &forge.Error{Code: forge.ErrorRefused, Retry: r.reason.Retry(), Text: r.text}
		}
	}
	return forge.CloseInternal, &forge.Error{
		Code: forge.ErrorInternal, Retry: forge.CloseInternal.Retry(), Text: "the daemon could not do it; try again",
	}
}
