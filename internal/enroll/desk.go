package enroll

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Defaults and bounds of a Desk.
const (
	// RecoverWithin is how long after its end a certificate may be replaced by whoever proves its key.
	RecoverWithin = 30 * 24 * time.Hour

	// sameWithin is for how long a request that comes again gets the same certificate, so that one that is repeated
	// without end does not fill the tables.
	sameWithin = time.Minute
	maxSame    = 4096

	// refusalBurst and refusalEvery bound the audit events of each kind of refusal: anybody may ask, and what is refused
	// again and again must not fill the tables. The daemon's log has all of them.
	refusalBurst = 60
	refusalEvery = 10 * time.Second
)

// What a Desk refuses by itself.
var (
	ErrTooLate      = errors.New("this certificate expired too long ago to be replaced without a token")
	ErrOtherCluster = errors.New("this enrolment token is of another cluster")
	ErrOtherKey     = errors.New("a renewal keeps the key of the connection's certificate")
	ErrOtherRunner  = errors.New("this certificate is of another runner")
)

// DeskConfig is what a Desk needs. CA and Store are required.
type DeskConfig struct {
	CA            *trust.CA
	Store         Store
	Lifetime      time.Duration                // of a runner's certificate; trust.RunnerLifetime where it is zero
	RecoverWithin time.Duration                // RecoverWithin where it is zero; below zero: never
	Now           func() time.Time             // wall clock; that of this machine where it is nil
	Audit         func(context.Context, Event) // nil: nobody
}

// Desk is the daemon's side: it decides who gets a certificate, and issues it. Its methods may be called from several
// goroutines at once.
type Desk struct {
	cfg DeskConfig

	mu       sync.Mutex
	same     map[trust.KeyID]issued
	refusals map[EventKind]*refusalBudget // fixed
}

// refusalBudget counts what is not audited.
type refusalBudget struct {
	limit   *rate.Limiter
	skipped int
}

// issued is a certificate of a moment ago.
type issued struct {
	runner forge.RunnerID
	cert   *x509.Certificate
	at     time.Time
}

// NewDesk returns a desk.
func NewDesk(cfg DeskConfig) *Desk {
	if cfg.Lifetime == 0 {
		cfg.Lifetime = trust.RunnerLifetime
	}
	if cfg.RecoverWithin == 0 {
		cfg.RecoverWithin = RecoverWithin
	}
	if cfg.Now == nil {
		cfg.Now = clock.Wall
	}
	if cfg.Audit == nil {
		cfg.Audit = func(context.Context, Event) {}
	}
	d := &Desk{cfg: cfg, same: map[trust.KeyID]issued{}, refusals: map[EventKind]*refusalBudget{}}
	for _, kind := range []EventKind{EventEnrolRefused, EventRenewalRefused} {
		d.refusals[kind] = &refusalBudget{limit: rate.NewLimiter(rate.Every(refusalEvery), refusalBurst)}
	}
	return d
}

// Enroll answers Enroll. The error tells Refuse what to say.
func (d *Desk) Enroll(ctx context.Context, w *agentv1.EnrollV1) (*agentv1.EnrollAcceptedV1, error) {
	request, err := trust.ParseRequest(w.Request)
	if err != nil {
		return nil, d.refused(ctx, EventEnrolRefused, forge.RunnerID{}, trust.KeyID{}, err)
	}
	event, find := EventEnrolled, d.redeem
	if w.Token == nil {
		event, find = EventRecovered, d.recover
	}
	runner, err := find(ctx, w, request.Key())
	if err != nil {
		return nil, d.refused(ctx, EventEnrolRefused, runner, request.Key(), err)
	}
	cert, err := d.issue(ctx, event, runner, request)
	if err != nil {
		return nil, d.refused(ctx, EventEnrolRefused, runner, request.Key(), err)
	}
	return &agentv1.EnrollAcceptedV1{Runner: runner.ULID, Certificate: d.onWire(cert)}, nil
}

// redeem finds the runner of a token.
func (d *Desk) redeem(ctx context.Context, w *agentv1.EnrollV1, key trust.KeyID) (forge.RunnerID, error) {
	token, err := trust.ParseToken(w.Token.Reveal())
	if err != nil {
		return forge.RunnerID{}, err
	}
	defer token.Wipe()
	if token.CA() != d.cfg.CA.Fingerprint() {
		return forge.RunnerID{}, ErrOtherCluster
	}
	grant, err := d.cfg.Store.RedeemToken(ctx, Redemption{Token: token.Hash(), Key: key, Name: w.Name, Now: d.cfg.Now()})
	return grant.Runner, err
}

// recover finds the runner of a key that was proved.
func (d *Desk) recover(ctx context.Context, _ *agentv1.EnrollV1, key trust.KeyID) (forge.RunnerID, error) {
	runner, err := d.known(ctx, key)
	if err != nil {
		return runner.ID, err
	}
	if d.cfg.RecoverWithin < 0 || runner.NotAfter.IsZero() || d.cfg.Now().After(runner.NotAfter.Add(d.cfg.RecoverWithin)) {
		return runner.ID, ErrTooLate
	}
	return runner.ID, nil
}

// known finds the runner of a key and refuses one that may have no certificate.
func (d *Desk) known(ctx context.Context, key trust.KeyID) (Runner, error) {
	runner, err := d.cfg.Store.RunnerByKey(ctx, key)
	switch {
	case err != nil:
		return Runner{}, err
	case runner.Revoked:
		return runner, ErrRunnerRevoked
	case runner.Disabled:
		return runner, ErrRunnerDisabled
	}
	return runner, nil
}

// Renew answers RenewCertificate on a connection that was made with peer. The error tells Refuse what to say.
func (d *Desk) Renew(ctx context.Context, peer *x509.Certificate, w *agentv1.RenewCertificateV1) (*agentv1.CertificateIssuedV1, error) {
	runner, err := trust.RunnerOf(peer, d.cfg.CA.Cluster())
	if err != nil {
		return nil, d.refused(ctx, EventRenewalRefused, runner, trust.KeyIDOf(peer), err)
	}
	request, err := d.renewal(ctx, peer, runner, w)
	if err != nil {
		return nil, d.refused(ctx, EventRenewalRefused, runner, trust.KeyIDOf(peer), err)
	}
	cert, err := d.issue(ctx, EventRenewed, runner, request)
	if err != nil {
		return nil, d.refused(ctx, EventRenewalRefused, runner, request.Key(), err)
	}
	return &agentv1.CertificateIssuedV1{Certificate: d.onWire(cert)}, nil
}

func (d *Desk) renewal(
	ctx context.Context, peer *x509.Certificate, runner forge.RunnerID, w *agentv1.RenewCertificateV1,
) (*trust.Request, error) {
	if w.Peer.RunnerID() != runner {
		return nil, ErrOtherRunner
	}
	request, err := trust.ParseRequest(w.Request)
	if err != nil {
		return nil, err
	}
	if request.Key() != trust.KeyIDOf(peer) {
		return nil, ErrOtherKey
	}
	owner, err := d.known(ctx, request.Key())
	if err != nil {
		return nil, err
	}
	if owner.ID != runner {
		return nil, ErrOtherRunner
	}
	return request, nil
}

// issue signs a certificate and records it before anybody gets it.
func (d *Desk) issue(ctx context.Context, event EventKind, runner forge.RunnerID, request *trust.Request) (*x509.Certificate, error) {
	now := d.cfg.Now()
	if cert := d.recent(runner, request.Key(), now); cert != nil {
		return cert, nil
	}
	cert, err := d.cfg.CA.IssueRunner(request, runner, now, d.cfg.Lifetime)
	if err != nil {
		return nil, err
	}
	if err := d.cfg.Store.RecordCertificate(ctx, d.record(cert, runner)); err != nil {
		return nil, err
	}
	d.remember(request.Key(), issued{runner, cert, now})
	d.audit(ctx, Event{Kind: event, Runner: runner, Key: request.Key(), Serial: serialOf(cert)})
	return cert, nil
}

func (d *Desk) record(cert *x509.Certificate, runner forge.RunnerID) Certificate {
	return Certificate{
		Serial: serialOf(cert), Runner: runner, Key: trust.KeyIDOf(cert),
		NotBefore: cert.NotBefore.UTC(), NotAfter: cert.NotAfter.UTC(),
	}
}

func serialOf(cert *x509.Certificate) trust.Serial {
	serial, _ := trust.SerialOf(cert) // of a certificate that was verified or made here
	return serial
}

func (d *Desk) recent(runner forge.RunnerID, key trust.KeyID, now time.Time) *x509.Certificate {
	d.mu.Lock()
	defer d.mu.Unlock()
	last, ok := d.same[key]
	if age := now.Sub(last.at); !ok || last.runner != runner || age < 0 || age >= sameWithin {
		return nil
	}
	return last.cert
}

func (d *Desk) remember(key trust.KeyID, last issued) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.same) >= maxSame {
		for k, old := range d.same {
			if age := last.at.Sub(old.at); age < 0 || age >= sameWithin {
				delete(d.same, k)
			}
		}
	}
	if len(d.same) < maxSame {
		d.same[key] = last
	}
}

func (d *Desk) onWire(cert *x509.Certificate) agentv1.CertificateV1 {
	return agentv1.CertificateV1{
		Chain: [][]byte{cert.Raw}, Roots: d.cfg.CA.Roots().DER(), NotAfter: cert.NotAfter.UnixMilli(),
	}
}

// Use notes that a connection which registers was made with peer; call it before the registration is accepted, never
// in the handshake, where the key is not proved yet. The error tells Refuse what to say.
func (d *Desk) Use(ctx context.Context, peer *x509.Certificate) (forge.RunnerID, error) {
	runner, err := trust.RunnerOf(peer, d.cfg.CA.Cluster())
	if err != nil {
		return forge.RunnerID{}, err
	}
	use, err := d.cfg.Store.UseCertificate(ctx, d.record(peer, runner), d.cfg.Now())
	if err != nil {
		return runner, fmt.Errorf("use certificate: %w", err)
	}
	if use.Unrecorded {
		d.audit(ctx, Event{Kind: EventUnrecorded, Runner: runner, Key: trust.KeyIDOf(peer), Serial: serialOf(peer)})
	}
	return runner, nil
}

// refused writes the audit event of a refusal and hands the error on. What went wrong here is no event.
func (d *Desk) refused(ctx context.Context, kind EventKind, runner forge.RunnerID, key trust.KeyID, err error) error {
	reason, _ := Refuse(err)
	if reason == forge.CloseInternal {
		return err
	}
	skipped, due := d.mayAudit(kind)
	if !due {
		return err
	}
	why := err.Error()
	if skipped > 0 {
		why = fmt.Sprintf("%s; %d refusals before it are only in the daemon's log", why, skipped)
	}
	d.audit(ctx, Event{Kind: kind, Runner: runner, Key: key, Reason: reason, Why: why})
	return err
}

// mayAudit reports whether a refusal is written down, and how many were not since the last one that was.
func (d *Desk) mayAudit(kind EventKind) (skipped int, due bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	b := d.refusals[kind]
	if !b.limit.Allow() {
		b.skipped++
		return 0, false
	}
	skipped, b.skipped = b.skipped, 0
	return skipped, true
}

func (d *Desk) audit(ctx context.Context, e Event) {
	e.Addr = AddrOf(ctx)
	d.cfg.Audit(ctx, e)
}
