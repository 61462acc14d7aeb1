package daemon

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/trust"
)

type tlsCertificate = tls.Certificate

// standingWithin bounds the look at a certificate during its handshake.
const standingWithin = 5 * time.Second

// lastCertificates is how many certificates of a runner are looked through for one that was superseded. Older ones have
// expired, or were superseded as well: then the registration refuses them.
const lastCertificates = 32

// standing says what the tables know of a certificate. Whether its runner is disabled is said at the registration, where
// there is a word for it.
func (d *Daemon) standing(p *parts) trust.Standing {
	return func(runner forge.RunnerID, serial trust.Serial) error {
		ctx, cancel := context.WithTimeout(context.Background(), standingWithin)
		defer cancel()
		return p.store.View(ctx, func(v *store.View) error {
			r, err := v.Runner(runner)
			switch {
			case errors.Is(err, store.ErrNotFound), err == nil && r.Revoked:
				return enroll.ErrRunnerRevoked
			case err != nil:
				return err
			}
			certificates, err := v.Certificates(runner, lastCertificates)
			for _, c := range certificates {
				if c.Serial == serial.String() && c.Superseded {
					return enroll.ErrSuperseded
				}
			}
			return err
		})
	}
}

// audit writes down what enrolment says (09§279). Where that fails, the log has it.
func (d *Daemon) audit(p *parts) func(context.Context, enroll.Event) {
	return func(ctx context.Context, e enroll.Event) {
		event := store.AuditEvent{Kind: string(e.Kind), Actor: "agent", Runner: e.Runner, Detail: e.Why}
		if e.Addr != "" {
			event.Subject = e.Addr
		}
		err := p.store.Update(context.WithoutCancel(ctx), store.ClassRest, func(tx *store.Tx) error { return tx.AppendAudit(event) })
		if err != nil {
			d.cfg.Log.Error("an audit event was not stored", "kind", event.Kind, telemetry.KeyRunner, e.Runner, "why", e.Why, telemetry.KeyError, err)
		}
	}
}
