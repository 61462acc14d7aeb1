// Package secrets keeps the secrets of projects: encrypted wherever they rest, given to the attempts that may have them, and
// to nobody else.
//
//	PUT ──▶ Set ──sealed──▶ store ──sealed──▶ Deliver ──▶ secret stream of the attempt's agent
//	          └──────── secret.key ────────────┘
//
// A value is encrypted with AES-256-GCM under the key of the daemon's folder, with a random nonce, for its project, name and
// version: a row that is put in the place of another one does not open. Whoever has the database has no value; whoever has
// the folder has them all.
//
// Deliver gives a value to an attempt whose lease is accepted, whose specification names it, within the project of its run,
// and only where the run's trust allows secrets. To its agent everything else looks as if there was no such secret. Each
// delivery is an audit event, and so is each change; none has a value or its length, and neither has any error of this
// package.
//
// It refuses to make a new key while there are values of another one. It starts no goroutine. All methods may be called from
// several goroutines at once.
package secrets

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Rows is the part of the database that is used here; see store.Store for the contract of each method.
type Rows interface {
	View(ctx context.Context, read func(v *store.View) error) error
	Update(ctx context.Context, class store.Class, change func(tx *store.Tx) error) error
}

// Secrets is the secrets of a daemon.
type Secrets struct {
	rows Rows
	file string
	log  *slog.Logger

	mu  sync.Mutex
	key *key // nil until it is needed
}

// New returns the secrets in a database, encrypted under the key in a file, which is made when the first secret is set. A nil
// log is silent.
func New(rows Rows, keyFile string, log *slog.Logger) *Secrets {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Secrets{rows: rows, file: keyFile, log: log}
}

// ErrFull says that a project has as many secrets as it may.
var ErrFull = fmt.Errorf("a project has at most %d secrets; remove some", store.MaxSecretNames)

// Set stores a new version of a secret, which is the newest from here on. The errors are forge.Problems for a name or a value
// that cannot be, ErrFull, a *KeyError, or the store's. The caller wipes the value.
func (s *Secrets) Set(ctx context.Context, project forge.ProjectName, name string, value forge.Secret, actor string) (store.SecretVersion, error) {
	if err := check(project, forge.SecretRef{Name: name}); err != nil {
		return store.SecretVersion{}, err
	}
	if n := len(value.Reveal()); n == 0 || n > forge.MaxSecret {
		return store.SecretVersion{}, forge.Problems{{Path: "value", What: fmt.Sprintf("is empty or has more than %d bytes", forge.MaxSecret)}}
	}
	key, err := s.openKey(ctx, true)
	if err != nil {
		return store.SecretVersion{}, err
	}
	var made store.SecretVersion
	err = s.rows.Update(ctx, store.ClassRest, func(tx *store.Tx) (err error) {
		if other, err := tx.SecretsBesides(key.id); err != nil || other {
			return errors.Join(err, s.foreignKey(other))
		}
		made, err = tx.PutSecret(project, name, actor, func(version uint32) (store.SealedSecret, error) {
			return key.seal(place{project, name, version}, value), nil
		})
		if err != nil {
			return err
		}
		return tx.AppendAudit(event("secret.set", actor, project, forge.SecretRef{Name: name, Version: made.Version}))
	})
	if errors.Is(err, store.ErrSecrets) {
		err = ErrFull
	}
	return made, err
}

// List lists the secrets of a project by name, those behind after, and the cursor of the next page. It needs no key.
func (s *Secrets) List(ctx context.Context, project forge.ProjectName, after string, limit int) (entries []store.SecretEntry, next string, err error) {
	if err := project.Validate(); err != nil {
		return nil, "", err
	}
	err = s.rows.View(ctx, func(v *store.View) error {
		entries, next, err = v.Secrets(project, after, limit)
		return err
	})
	return entries, next, err
}

// Remove removes a version of a secret, or all of it where the reference has none. store.ErrNotFound. It needs no key.
func (s *Secrets) Remove(ctx context.Context, project forge.ProjectName, ref forge.SecretRef, actor string) error {
	if err := check(project, ref); err != nil {
		return err
	}
	return s.rows.Update(ctx, store.ClassRest, func(tx *store.Tx) error {
		if err := tx.RemoveSecret(project, ref); err != nil {
			return err
		}
		return tx.AppendAudit(event("secret.remove", actor, project, ref))
	})
}

// Check reports whether every value that is stored can be decrypted with the key of the folder, as far as that shows without
// doing it. Its error is a *KeyError, or the store's.
func (s *Secrets) Check(ctx context.Context) error {
	var any bool
	err := s.rows.View(ctx, func(v *store.View) (err error) {
		any, err = v.SecretsBesides(digest.Digest{})
		return err
	})
	if err != nil || !any {
		return err
	}
	key, err := s.openKey(ctx, false)
	if err != nil {
		return err
	}
	var other bool
	err = s.rows.View(ctx, func(v *store.View) (err error) {
		other, err = v.SecretsBesides(key.id)
		return err
	})
	return errors.Join(err, s.foreignKey(other))
}

// check checks what names a secret.
func check(project forge.ProjectName, ref forge.SecretRef) error {
	if err := project.Validate(); err != nil {
		return err
	}
	return ref.Validate()
}

// event is an audit event about a secret.
func event(kind, actor string, project forge.ProjectName, ref forge.SecretRef) store.AuditEvent {
	return store.AuditEvent{Kind: kind, Actor: actor, Subject: string(project) + " " + ref.String()}
}
