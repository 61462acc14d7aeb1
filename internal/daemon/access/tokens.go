package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// MaxLifetime bounds how long a token with an end may live.
const MaxLifetime = 10 * 365 * 24 * time.Hour

// ErrFull says that there are as many tokens as there may be.
var ErrFull = fmt.Errorf("there are %d access tokens that are good; revoke some", store.MaxAccessTokens)

// Request asks for an access token.
type Request struct {
	Name     string
	Role     forge.Role
	Trust    forge.TrustClass // zero: what the role has
	Lifetime time.Duration    // zero: without end
	Actor    string
}

// TrustOf is the trust class of the runs of a role, where whoever made the token said nothing else. A viewer submits none.
func TrustOf(role forge.Role) forge.TrustClass {
	if role.May(forge.RoleDeveloper) {
		return forge.TrustTrusted
	}
	return forge.TrustUntrusted
}

// validate checks a request, and fills in what follows from the role.
func (r *Request) validate() error {
	var found forge.Problems
	if err := forge.CheckTokenName(r.Name); err != nil {
		found = append(found, forge.Problem{Path: "name", What: err.Error()})
	}
	if !r.Role.Valid() {
		found = append(found, forge.Problem{Path: "role", What: "is missing: viewer, developer or admin"})
	}
	switch {
	case r.Trust == 0:
		r.Trust = TrustOf(r.Role)
	case !r.Trust.Valid():
		found = append(found, forge.Problem{Path: "trust", What: "is no class of trust"})
	case r.Role == forge.RoleViewer:
		found = append(found, forge.Problem{Path: "trust", What: "is of runs, and a viewer submits none"})
	}
	if r.Lifetime < 0 || r.Lifetime > MaxLifetime {
		found = append(found, forge.Problem{Path: "expires_in", What: fmt.Sprintf("is not within 0s and %v", MaxLifetime)})
	}
	if len(found) > 0 {
		return found
	}
	return nil
}

// Create makes a token and returns its text, which is kept nowhere. The errors are forge.Problems, ErrFull, store.ErrExists where
// the name is of a token that is good, or the database's.
func (a *Access) Create(ctx context.Context, r Request) (store.AccessToken, forge.Secret, error) {
	if err := r.validate(); err != nil {
		return store.AccessToken{}, forge.Secret{}, err
	}
	text, k := mint(ident.New[forge.AccessTokenID]())
	t := store.AccessToken{ID: k.id, Name: r.Name, Role: r.Role, Trust: r.Trust, Hash: k.secret, Creator: r.Actor}
	if r.Lifetime > 0 {
		t.Expires = forge.WallTime(a.now().Add(r.Lifetime).UnixMilli())
	}
	err := a.rows.Update(ctx, store.ClassRest, func(tx *store.Tx) error {
		if err := tx.CreateAccessToken(t); err != nil {
			return err
		}
		var err error
		if t, err = tx.AccessToken(t.ID); err != nil {
			return err
		}
		return tx.AppendAudit(event("token.create", r.Actor, &t))
	})
	if errors.Is(err, store.ErrAccessTokens) {
		err = ErrFull
	}
	if err != nil {
		text.Zero()
		return store.AccessToken{}, forge.Secret{}, err
	}
	return t, text, nil
}

// Revoke ends a token for good, with all that is under way with it. It may be repeated. store.ErrNotFound.
func (a *Access) Revoke(ctx context.Context, id forge.AccessTokenID, actor string) (store.AccessToken, error) {
	var t store.AccessToken
	err := a.rows.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		first, err := tx.RevokeAccessToken(id)
		if err != nil {
			return err
		}
		if t, err = tx.AccessToken(id); err != nil || !first {
			return err
		}
		return tx.AppendAudit(event("token.revoke", actor, &t))
	})
	if err != nil {
		return store.AccessToken{}, err
	}
	a.turnOut(id, &EndedError{t.Name, t.Role, t.Revoked, true})
	return t, nil
}

// event is an audit event about a token.
func event(kind, actor string, t *store.AccessToken) store.AuditEvent {
	detail := fmt.Sprintf("%v, %v, runs %v", t.ID, t.Role, t.Trust)
	if t.Expires != 0 {
		detail += ", until " + time.UnixMilli(int64(t.Expires)).UTC().Format(time.RFC3339)
	}
	return store.AuditEvent{Kind: kind, Actor: actor, Subject: "token:" + t.Name, Detail: detail}
}
