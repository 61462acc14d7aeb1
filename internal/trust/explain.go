package trust

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"time"
)

// ClockError says that a certificate is not valid at this moment, and what that says about the clocks (case B32).
type ClockError struct {
	NotBefore, NotAfter time.Time
	Now                 time.Time // of this machine
}

// Skew is by how much this machine's clock is behind (below zero) or ahead of the peer's, at least, if the certificate is
// to be good. Whoever made it wrote Backdate less than its own clock.
func (e *ClockError) Skew() time.Duration {
	if e.Now.Before(e.NotBefore) {
		return e.Now.Sub(e.NotBefore.Add(Backdate))
	}
	return e.Now.Sub(e.NotAfter)
}

func (e *ClockError) Error() string {
	if e.Now.Before(e.NotBefore) {
		return fmt.Sprintf("the peer's certificate is not valid yet: it begins %s, and this machine's clock says %s. "+
			"This clock is behind the peer's by about %s or more: compare both with the true time and set the one that is wrong",
			stamp(e.NotBefore), stamp(e.Now), spell(-e.Skew()))
	}
	return fmt.Sprintf("the peer's certificate has expired: it ended %s, and this machine's clock says %s. "+
		"Either nobody has renewed it, or this clock is ahead by about %s or more: compare both with the true time and set the one that is wrong",
		stamp(e.NotAfter), stamp(e.Now), spell(e.Skew()))
}

// ErrStranger is the kind of error for a daemon that another CA than the agent's vouches for.
var ErrStranger = errors.New("it is not of the cluster that this agent was enrolled in, or somebody is in between; " +
	"check the address, and the fingerprint on the daemon")

// Explain makes the error of a handshake say what a clock has to do with it, or that the daemon is another one; other errors stay
// as they are. now is the
// wall clock at the time of the handshake.
func Explain(err error, now time.Time) error {
	failed, ok := errors.AsType[*tls.CertificateVerificationError](err)
	if !ok || len(failed.UnverifiedCertificates) == 0 {
		return err
	}
	_, named := errors.AsType[x509.HostnameError](failed.Err)
	_, signed := errors.AsType[x509.UnknownAuthorityError](failed.Err)
	if named || signed {
		return fmt.Errorf("%w (%w)", ErrStranger, err)
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](failed.Err); !ok || invalid.Reason != x509.Expired {
		return err
	}
	leaf := failed.UnverifiedCertificates[0]
	if !now.Before(leaf.NotBefore) && !now.After(leaf.NotAfter) {
		return err // another certificate of the chain
	}
	return fmt.Errorf("%w (%w)", &ClockError{leaf.NotBefore, leaf.NotAfter, now}, err)
}

// ErrClocksDiffer is the kind of error for clocks that do not agree about a certificate.
var ErrClocksDiffer = errors.New("the clocks of this machine and of the daemon differ")

// ExplainExpired says what it means that a daemon has called the certificate of this agent expired or not yet valid: nil
// where it has expired by this machine's clock too, and by how much the clocks differ at least where it has not.
func ExplainExpired(own *x509.Certificate, now time.Time) error {
	since, left := now.Sub(own.NotBefore), own.NotAfter.Sub(now)
	if since < 0 || left < 0 {
		return nil
	}
	return fmt.Errorf("%w by %s or more: the daemon does not find this runner's certificate valid at this time, and by this machine's "+
		"clock, %s, it is, from %s to %s; compare both with the true time and set the one that is wrong",
		ErrClocksDiffer, spell(min(since, left)), stamp(now), stamp(own.NotBefore), stamp(own.NotAfter))
}

// spell writes a duration for people, to the minute where it is long.
func spell(d time.Duration) string {
	if d < 2*time.Minute {
		return d.Round(time.Second).String()
	}
	d = d.Round(time.Minute)
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	if hours := d / time.Hour; hours > 0 {
		return fmt.Sprintf("%d h %d min", hours, (d%time.Hour)/time.Minute)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}
