package enrolment_test

import (
	"context"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/enrolment"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/enroll/enrolltest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/trust"
)

var _ enroll.Store = (*enrolment.Store)(nil)

// admin is a database with what administrators do to it.
type admin struct {
	*enrolment.Store
	t  *testing.T
	db *store.Store
}

func (a *admin) AddToken(hash trust.TokenHash, end time.Time) {
	token := store.Token{
		Hash: digest.Digest(hash), Pool: forge.DefaultPool, Trust: forge.TrustTrusted, Slots: 1, Expires: forge.WallTime(end.UnixMilli()),
	}
	err := a.db.Update(context.Background(), store.ClassState, func(tx *store.Tx) error { return tx.CreateToken(token) })
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *admin) SetRunner(id forge.RunnerID, disabled, revoked bool) {
	cmd := &authority.SetRunner{Runner: id, Disabled: disabled, Revoked: revoked}
	if answer, err := a.db.Do(context.Background(), store.ClassState, cmd); err != nil || !answer.Done {
		a.t.Fatalf("%+v, %v", answer, err)
	}
}

func TestTheDatabaseIsAStoreOfEnrolment(t *testing.T) {
	enrolltest.Store(t, func(t *testing.T) enrolltest.Admin {
		db, err := store.Open(t.Context(), t.TempDir(), store.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := db.Close(); err != nil {
				t.Error(err)
			}
		})
		return &admin{enrolment.New(db), t, db}
	})
}
