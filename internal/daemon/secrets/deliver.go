package secrets

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/jobspec"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// KeptFor is how long an agent may keep a value that it was given in memory. It needs it for the moment before the first step.
const KeptFor = 10 * time.Minute

// ErrNone says that there is no such secret for an attempt, whatever the reason: the log of the daemon has it.
var ErrNone = errors.New("no such secret for this attempt")

// Deliver returns the value of a secret for an attempt, and the version that it is: the newest where the reference has none.
// The delivery is on record before it returns. The caller wipes the value. The error is ErrNone for an attempt that may not
// have it; any other one is the daemon's to mend.
func (s *Secrets) Deliver(ctx context.Context, of forge.AttemptContext, ref forge.SecretRef) (forge.Secret, forge.SecretRef, error) {
	project, err := s.projectFor(ctx, of, ref)
	if err != nil {
		return s.none(of, ref, err)
	}
	key, noKey := s.openKey(ctx, false)
	var value forge.Secret
	given := place{project: project, name: ref.Name}
	err = s.rows.Update(ctx, store.ClassRest, func(tx *store.Tx) error {
		value.Zero() // of an earlier try
		row, err := claim(tx, of, project, ref)
		if err != nil {
			return err
		}
		if noKey != nil {
			return noKey // only where there is something that it would open
		}
		if row.Key != key.id {
			return s.foreignKey(true)
		}
		given.version = row.Version
		if value, err = key.open(given, row.SealedSecret); err != nil {
			return err
		}
		e := event("secret.deliver", "agent", project, given.ref())
		e.Runner, e.Detail = of.Runner, "attempt "+of.Attempt.String()
		return tx.AppendAudit(e)
	})
	if err != nil {
		value.Zero()
		return s.none(of, ref, err)
	}
	return value, given.ref(), nil
}

// none passes on the error of a secret that is not given. Of one that is not for the attempt only the log gets the reason.
func (s *Secrets) none(of forge.AttemptContext, ref forge.SecretRef, err error) (forge.Secret, forge.SecretRef, error) {
	var denied denial
	if errors.As(err, &denied) {
		s.log.Warn("a secret was not given", "name", ref.String(), "why", denied.Error(), telemetry.KeyRunner, of.Runner.String(),
			telemetry.KeyAttempt, of.Attempt.String())
		err = ErrNone
	}
	return forge.Secret{}, ref, err
}

// denial is why an attempt does not get a secret.
type denial string

func (d denial) Error() string { return string(d) }

// Reasons. They are for the daemon's log.
const (
	noAttempt  denial = "there is no such attempt"
	otherLease denial = "its lease is not the one that was accepted, or has ended"
	unnamed    denial = "its specification does not name it"
	untrusted  denial = "its run may have no secrets"
	noSecret   denial = "its project has no such secret"
)

// projectFor is the project whose secret an attempt asks for, if what never changes about the attempt allows it.
func (s *Secrets) projectFor(ctx context.Context, of forge.AttemptContext, ref forge.SecretRef) (project forge.ProjectName, err error) {
	var bytes []byte
	var trust forge.TrustClass
	err = s.rows.View(ctx, func(v *store.View) error {
		attempt, err := v.Attempt(of.Attempt)
		if err != nil {
			return err
		}
		if attempt.Lease.Context != of {
			return otherLease
		}
		job, err := v.Job(of.Job)
		if err != nil {
			return err
		}
		run, err := v.Run(job.Run)
		if err != nil {
			return err
		}
		project, trust = run.Project, run.Trust
		bytes, err = v.Spec(of.Spec)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return "", noAttempt
	case err != nil:
		return "", err
	case !mayHave(trust):
		return "", untrusted
	}
	spec, err := jobspec.Open(of.Spec, bytes)
	if err != nil {
		return "", fmt.Errorf("read the specification of attempt %v: %w", of.Attempt, err)
	}
	if !slices.ContainsFunc(spec.Secrets, func(use forge.SecretUse) bool { return use.Ref == ref }) {
		return "", unnamed
	}
	return project, nil
}

// mayHave reports whether runs of a trust class get secrets. Strangers' do not, whatever their pipeline says (S23).
func mayHave(trust forge.TrustClass) bool {
	return trust == forge.TrustTrusted || trust == forge.TrustProtected
}

// claim returns the row of a secret for an attempt whose lease holds now.
func claim(tx *store.Tx, of forge.AttemptContext, project forge.ProjectName, ref forge.SecretRef) (store.SecretRow, error) {
	attempt, err := tx.Attempt(of.Attempt)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.SecretRow{}, noAttempt
	case err != nil:
		return store.SecretRow{}, err
	case attempt.Lease.Context != of || attempt.Lease.State != forge.LeaseAccepted:
		return store.SecretRow{}, otherLease
	}
	row, err := tx.Secret(project, ref)
	if errors.Is(err, store.ErrNotFound) {
		err = noSecret
	}
	return row, err
}
