package store

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Redemption is an attempt to use an enrolment token.
type Redemption struct {
	Token  digest.Digest  // hash of its secret
	Key    digest.Digest  // of the public key that the runner will have
	Runner forge.RunnerID // new; used where the token makes a runner
	Name   string         // that the agent would like, or empty
	Now    forge.WallTime // before the token's end
}

const tokenColumns = `t.hash, t.name, t.pool, t.trust, t.labels, t.slots, t.creator, t.created_at, t.expires_at, t.used_by, t.used_at,
	t.runner`

func tokenInto(t *Token) []any {
	return []any{
		hash(&t.Hash), &t.Name, &t.Pool, num(&t.Trust), doc(&t.Labels), num(&t.Slots), &t.Creator, num(&t.Created), num(&t.Expires),
		hash(&t.UsedBy), num(&t.UsedAt), id(&t.Runner.ULID),
	}
}

// Token returns an enrolment token by the hash of its secret, or ErrNotFound.
func (v *View) Token(secret digest.Digest) (Token, error) {
	return one(v, `SELECT `+tokenColumns+` FROM token t WHERE t.hash = ?`, tokenInto, secret[:])
}

// Tokens lists the enrolment tokens, newest first, at most limit.
func (v *View) Tokens(limit int) ([]Token, error) {
	return list(v, `SELECT `+tokenColumns+` FROM token t ORDER BY t.seq DESC LIMIT ?`, tokenInto, page(limit))
}

// RunnerByKey returns the runner that a key is bound to, or ErrNotFound. A disabled or revoked one is returned too.
func (v *View) RunnerByKey(key digest.Digest) (Runner, error) {
	if key.IsZero() {
		return Runner{}, ErrNotFound
	}
	return v.runner(`WHERE r.key = ? AND r.deleted_at = 0`, key[:])
}

// CreateToken stores a token. One that names a runner is bound to it: redeemed, it gives that runner a new key. ErrExists
// where its hash is known.
func (tx *Tx) CreateToken(t Token) error {
	if _, err := tx.Token(t.Hash); !isNotFound(err) {
		return orExists(err, "an enrolment token with this secret")
	}
	seq, err := tx.next("token")
	if err != nil {
		return err
	}
	return tx.write(`INSERT INTO token (hash, seq, name, pool, trust, labels, slots, creator, created_at, expires_at, used_by,
		used_at, runner) VALUES (`+marksOf("?", 11)+`, 0, ?)`, t.Hash[:], toInt(seq), t.Name, t.Pool, toInt(t.Trust), toText(t.Labels),
		toInt(t.Slots), t.Creator, toInt(tx.now), toInt(t.Expires), noDigest, t.Runner.ULID[:])
}

func orExists(err error, what string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrExists, what)
}

// DeleteToken takes a token back that was not used. ErrNotFound, ErrUsed.
func (tx *Tx) DeleteToken(secret digest.Digest) error {
	t, err := tx.Token(secret)
	switch {
	case err != nil:
		return err
	case !t.UsedBy.IsZero():
		return ErrUsed
	}
	return tx.write(`DELETE FROM token WHERE hash = ?`, secret[:])
}

// RedeemToken uses a token up for a public key, exactly once, and returns the runner that the token makes or is bound to, with
// the key bound to it in place of one that it had. The same key again gets the same runner, whatever the time, and again is
// true. Whatever is refused changes nothing: ErrNotFound; ErrUsed by another key; ErrExpired; ErrKeyTaken where the key is
// another runner's; ErrRevoked or ErrDisabled for the runner.
func (tx *Tx) RedeemToken(r Redemption) (runner Runner, again bool, err error) {
	t, err := tx.Token(r.Token)
	if err != nil {
		return Runner{}, false, err
	}
	again = t.UsedBy == r.Key && !r.Key.IsZero()
	switch {
	case !again && !t.UsedBy.IsZero():
		return Runner{}, false, ErrUsed
	case !again && r.Now >= t.Expires:
		return Runner{}, false, ErrExpired
	}
	if err := tx.admit(&t, &r); err != nil {
		return Runner{}, false, err
	}
	if !again {
		if err := tx.redeem(&t, &r); err != nil {
			return Runner{}, false, err
		}
	}
	runner, err = tx.Runner(t.Runner)
	return runner, again, err
}

// admit checks that the key may belong to the token's runner, and that this may speak at all.
func (tx *Tx) admit(t *Token, r *Redemption) error {
	owner, err := tx.RunnerByKey(r.Key)
	switch {
	case err == nil && owner.ID != t.Runner:
		return ErrKeyTaken
	case err != nil && !isNotFound(err):
		return err
	case t.Runner.IsZero():
		return nil
	}
	bound, err := tx.Runner(t.Runner)
	if isNotFound(err) {
		return ErrRevoked // it was deleted
	}
	if err != nil {
		return err
	}
	return mayEnrol(&bound)
}

func mayEnrol(r *Runner) error {
	switch {
	case r.Revoked:
		return ErrRevoked
	case r.Disabled:
		return ErrDisabled
	}
	return nil
}

func (tx *Tx) redeem(t *Token, r *Redemption) error {
	if t.Runner.IsZero() {
		t.Runner = r.Runner
		name, err := tx.freeName(t, r)
		if err != nil {
			return err
		}
		if err := tx.CreateRunner(NewRunner{
			ID: t.Runner, Name: name, Pool: t.Pool, Trust: t.Trust, Labels: t.Labels, Slots: t.Slots,
		}); err != nil {
			return err
		}
	}
	if err := tx.write(`UPDATE runner SET key = ? WHERE id = ?`, r.Key[:], t.Runner.ULID[:]); err != nil {
		return err
	}
	tx.changes.runner(t.Runner)
	return tx.write(`UPDATE token SET used_by = ?, used_at = ?, runner = ? WHERE hash = ?`,
		r.Key[:], toInt(tx.now), t.Runner.ULID[:], t.Hash[:])
}

// freeName is the token's name, else the agent's wish, else one made of the id; where that is taken, with the id's end.
func (tx *Tx) freeName(t *Token, r *Redemption) (string, error) {
	name := t.Name
	if name == "" {
		name = r.Name
	}
	text := lowered(r.Runner)
	if name == "" || (forge.Runner{ID: r.Runner, Name: name, Pool: t.Pool, Trust: t.Trust}).Validate() != nil {
		name = "runner"
	} else if _, err := tx.RunnerByName(name); isNotFound(err) {
		return name, nil
	} else if err != nil {
		return "", err
	}
	return name[:min(len(name), forge.MaxName-len(text)-1)] + "-" + text, nil
}
