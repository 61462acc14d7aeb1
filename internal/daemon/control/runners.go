package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Verb is what an administrator does to a runner.
type Verb string

// The verbs. Each may be repeated: it says how the runner shall be, not how it changes.
const (
	Drain   Verb = "drain"   // gets no new lease
	Resume  Verb = "resume"  // ends that
	Disable Verb = "disable" // no new lease; what it runs is cancelled, and its connection closed, within five seconds
	Enable  Verb = "enable"  // ends that
	Revoke  Verb = "revoke"  // as Disable, and no certificate of it is good any more; for ever
)

// What an administrator is told, besides the store's errors.
var (
	ErrRevoked = errors.New("this runner was revoked, which is for good; enrol its machine anew")
	ErrVerb    = errors.New("no such thing can be done to a runner")
)

// SetRunner carries out a verb and writes it into the audit log, in one transaction. store.ErrNotFound, ErrRevoked,
// ErrVerb.
func (c *Control) SetRunner(ctx context.Context, id forge.RunnerID, verb Verb, actor string) (r store.Runner, err error) {
	err = c.store.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		before, err := tx.Runner(id)
		if err != nil {
			return err
		}
		cmd := &authority.SetRunner{Runner: id, Disabled: before.Disabled, Revoked: before.Revoked, Draining: before.Draining}
		if err := verb.apply(cmd); err != nil {
			return err
		}
		if _, err := tx.Do(cmd); err != nil {
			return err
		}
		if r, err = tx.Runner(id); err != nil {
			return err
		}
		return tx.AppendAudit(store.AuditEvent{Kind: "runner." + string(verb), Actor: actor, Runner: id, Subject: before.Name})
	})
	return r, err
}

func (v Verb) apply(to *authority.SetRunner) error {
	switch v {
	case Drain:
		to.Draining = true
	case Resume:
		to.Draining = false
	case Disable:
		to.Disabled = true
	case Enable:
		if to.Revoked {
			return ErrRevoked
		}
		to.Disabled = false
	case Revoke:
		to.Revoked = true
	default:
		return ErrVerb
	}
	return nil
}

// ErrConnected says that a runner's connection stands: whoever wants it gone ends that first, so that its agent hears why.
var ErrConnected = errors.New("the runner is connected; disable or revoke it, and try again in a few seconds")

// DeleteRunner takes a runner out of the fleet for good. store.ErrNotFound; store.ErrInUse while it has a lease;
// ErrConnected while it is connected, for nothing would tell its agent.
func (c *Control) DeleteRunner(ctx context.Context, id forge.RunnerID, actor string) error {
	return c.store.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		r, err := tx.Runner(id)
		if err != nil {
			return err
		}
		if err := tx.DeleteRunner(id); err != nil {
			return err
		}
		if c.Presence(id).Connected {
			return ErrConnected
		}
		return tx.AppendAudit(store.AuditEvent{Kind: "runner.delete", Actor: actor, Runner: id, Subject: r.Name})
	})
}

// TokenRequest says what an enrolment token is to make. Zero fields have the default.
type TokenRequest struct {
	Name     string // of the runner; the machine's choice where it is empty
	Pool     string // forge.DefaultPool
	Trust    forge.TrustClass
	Labels   []string
	Slots    int           // 1
	Lifetime time.Duration // trust.TokenLifetime
	Actor    string
}

// MintToken makes an enrolment token for a runner that does not exist yet. Only its hash is stored, so the text is there
// once. forge.Problems where the request is wrong; store.ErrExists where a runner has the name already.
func (c *Control) MintToken(ctx context.Context, r TokenRequest) (store.Token, forge.Secret, error) {
	t, err := newToken(r)
	if err != nil {
		return store.Token{}, forge.Secret{}, err
	}
	secret := c.mint(&t)
	err = c.store.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		if err := nameIsFree(tx, t.Name); err != nil {
			return err
		}
		return storeToken(tx, t)
	})
	if err != nil {
		return store.Token{}, forge.Secret{}, err
	}
	return t, secret, nil
}

// CreateRunner makes a runner whose machine is yet to come, and the token with which that enrols. forge.Problems where
// the request is wrong; store.ErrExists where the name is taken.
func (c *Control) CreateRunner(ctx context.Context, r TokenRequest) (made store.Runner, t store.Token, secret forge.Secret, err error) {
	if r.Name == "" {
		return made, t, secret, forge.Problems{{Path: "name", What: "is missing"}}
	}
	if t, err = newToken(r); err != nil {
		return store.Runner{}, store.Token{}, forge.Secret{}, err
	}
	t.Runner = ident.New[forge.RunnerID]()
	secret = c.mint(&t)
	err = c.store.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		n := store.NewRunner{ID: t.Runner, Name: t.Name, Pool: t.Pool, Trust: t.Trust, Labels: t.Labels, Slots: t.Slots}
		if err := tx.CreateRunner(n); err != nil {
			return err
		}
		if err := tx.AppendAudit(store.AuditEvent{Kind: "runner.create", Actor: r.Actor, Runner: n.ID, Subject: n.Name}); err != nil {
			return err
		}
		if err := storeToken(tx, t); err != nil {
			return err
		}
		made, err = tx.Runner(n.ID)
		return err
	})
	if err != nil {
		return store.Runner{}, store.Token{}, forge.Secret{}, err
	}
	return made, t, secret, nil
}

// mint draws the secret of a token.
func (c *Control) mint(t *store.Token) forge.Secret {
	minted := c.ca.Mint()
	t.Hash = digest.Digest(minted.Hash())
	return forge.NewSecret([]byte(minted.Reveal()))
}

func nameIsFree(tx *store.Tx, name string) error {
	if name == "" {
		return nil
	}
	switch _, err := tx.RunnerByName(name); {
	case err == nil:
		return fmt.Errorf("runner %s: %w", name, store.ErrExists)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	return nil
}

func storeToken(tx *store.Tx, t store.Token) error {
	if err := tx.CreateToken(t); err != nil {
		return err
	}
	return tx.AppendAudit(store.AuditEvent{
		Kind: "token.create", Actor: t.Creator, Runner: t.Runner, Subject: TokenID(&t), Detail: "for a runner " + orAny(t.Name),
	})
}

func orAny(name string) string {
	if name == "" {
		return "of any name"
	}
	return "named " + name
}

// TokenID is how people call a token: the first digits of its hash, which say nothing about it.
func TokenID(t *store.Token) string { return fmt.Sprintf("%x", t.Hash[:6]) }

// newToken fills in the defaults and checks the rest as the runner's would be.
func newToken(r TokenRequest) (store.Token, error) {
	now := time.Now()
	t := store.Token{Name: r.Name, Pool: r.Pool, Trust: r.Trust, Labels: r.Labels, Slots: r.Slots, Creator: r.Actor, Created: forge.WallTime(now.UnixMilli())}
	if t.Pool == "" {
		t.Pool = forge.DefaultPool
	}
	if t.Trust == 0 {
		t.Trust = forge.TrustTrusted
	}
	if t.Slots == 0 {
		t.Slots = 1
	}
	if r.Lifetime == 0 {
		r.Lifetime = trust.TokenLifetime
	}
	t.Expires = forge.WallTime(now.Add(r.Lifetime).UnixMilli())
	var found forge.Problems
	name := t.Name
	if name == "" {
		name = "any"
	}
	like := forge.Runner{ID: forge.RunnerID{ULID: forge.ULID{1}}, Name: name, Pool: t.Pool, Trust: t.Trust, Labels: t.Labels}
	_ = errors.As(like.Validate(), &found)
	if t.Slots < 1 || t.Slots > int(forge.MaxSlots) {
		found = append(found, forge.Problem{Path: "slots", What: fmt.Sprintf("%d is not within 1 and %d", t.Slots, forge.MaxSlots)})
	}
	if err := trust.CheckTokenLifetime(r.Lifetime); err != nil {
		found = append(found, forge.Problem{Path: "expires_in", What: err.Error()})
	}
	if len(found) > 0 {
		return store.Token{}, found
	}
	return t, nil
}
