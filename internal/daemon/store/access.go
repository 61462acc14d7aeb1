package store

import (
	"errors"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of access tokens.
const (
	// MaxAccessTokens is how many may be good at a time.
	MaxAccessTokens = 1000
	// accessTokensKept is for how long one that is good no more is kept, to say so to whoever shows it.
	accessTokensKept = 90 * 24 * time.Hour
)

// ErrAccessTokens says that there are as many access tokens as there may be.
var ErrAccessTokens = errors.New("store: there are as many access tokens as there may be")

// AccessToken is what lets somebody ask over HTTP. Only the hash of its secret is stored.
type AccessToken struct {
	ID       forge.AccessTokenID
	Sequence uint64 // order of making, from 1; set by the store
	Name     string // unique among those that are good
	Role     forge.Role
	Trust    forge.TrustClass // of the runs that are submitted with it
	Hash     digest.Digest
	Creator  string
	Created  forge.WallTime // set by the store
	Expires  forge.WallTime // zero: never
	Used     forge.WallTime // about when it was shown last; zero: never
	Revoked  forge.WallTime // zero: it was not
}

// Good reports whether the token lets anybody in at a time.
func (t *AccessToken) Good(now forge.WallTime) bool { return t.Revoked == 0 && !t.Expired(now) }

// Expired reports whether a token's time is over.
func (t *AccessToken) Expired(now forge.WallTime) bool { return t.Expires != 0 && now >= t.Expires }

const accessColumns = `t.id, t.seq, t.name, t.role, t.trust, t.hash, t.creator, t.created_at, t.expires_at, t.used_at, t.revoked_at`

// goodAccess is Good in SQL, of one time.
const goodAccess = `t.revoked_at = 0 AND (t.expires_at = 0 OR t.expires_at > ?)`

func accessInto(t *AccessToken) []any {
	return []any{
		id(&t.ID.ULID), num(&t.Sequence), &t.Name, num(&t.Role), num(&t.Trust), hash(&t.Hash), &t.Creator, num(&t.Created),
		num(&t.Expires), num(&t.Used), num(&t.Revoked),
	}
}

// AccessToken returns a token, good or not. ErrNotFound.
func (v *View) AccessToken(token forge.AccessTokenID) (AccessToken, error) {
	return one(v, `SELECT `+accessColumns+` FROM access_token t WHERE t.id = ?`, accessInto, token.ULID[:])
}

// AccessTokenByName returns the token that is good at a time and has a name; where there is none, the newest that had it.
// ErrNotFound.
func (v *View) AccessTokenByName(name string, now forge.WallTime) (AccessToken, error) {
	return one(v, `SELECT `+accessColumns+` FROM access_token t WHERE t.name = ? ORDER BY `+goodAccess+` DESC, t.seq DESC LIMIT 1`,
		accessInto, name, toInt(now))
}

// AccessTokens lists tokens, newest first, those with a sequence below before (zero: all), at most limit, and the cursor of the
// next page, which is zero after the last. Those that are good no more are in it for a while.
func (v *View) AccessTokens(before uint64, limit int) ([]AccessToken, uint64, error) {
	text, args := `SELECT `+accessColumns+` FROM access_token t ORDER BY t.seq DESC LIMIT ?`, []any{page(limit)}
	if before > 0 {
		text, args = `SELECT `+accessColumns+` FROM access_token t WHERE t.seq < ? ORDER BY t.seq DESC LIMIT ?`, []any{toInt(before), page(limit)}
	}
	tokens, err := list(v, text, accessInto, args...)
	if err != nil || int64(len(tokens)) < page(limit) {
		return tokens, 0, err
	}
	return tokens, tokens[len(tokens)-1].Sequence, nil
}

// CreateAccessToken stores a token, and forgets those that are good no more since long ago. ErrExists where a good one has the
// name; ErrAccessTokens.
func (tx *Tx) CreateAccessToken(t AccessToken) error {
	if old, err := tx.AccessTokenByName(t.Name, tx.now); err == nil && old.Good(tx.now) || err != nil && !isNotFound(err) {
		return orExists(err, "an access token of this name")
	}
	before := toInt(tx.now) - accessTokensKept.Milliseconds()
	if _, err := tx.exec(`DELETE FROM access_token WHERE revoked_at <> 0 AND revoked_at < ? OR expires_at <> 0 AND expires_at < ?`, before, before); err != nil {
		return err
	}
	var good int
	if _, err := tx.find(`SELECT COUNT(*) FROM access_token t WHERE `+goodAccess, []any{toInt(tx.now)}, num(&good)); err != nil {
		return err
	}
	if good >= MaxAccessTokens {
		return fmt.Errorf("%w: %d", ErrAccessTokens, MaxAccessTokens)
	}
	seq, err := tx.next("access_token")
	if err != nil {
		return err
	}
	return tx.write(`INSERT INTO access_token (id, seq, name, role, trust, hash, creator, created_at, expires_at, used_at, revoked_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0)`, t.ID.ULID[:], toInt(seq), t.Name, toInt(t.Role), toInt(t.Trust), t.Hash[:], t.Creator,
		toInt(tx.now), toInt(t.Expires))
}

// RevokeAccessToken ends a token for good, and reports whether it had not been revoked before. ErrNotFound.
func (tx *Tx) RevokeAccessToken(token forge.AccessTokenID) (bool, error) {
	t, err := tx.AccessToken(token)
	if err != nil || t.Revoked != 0 {
		return false, err
	}
	return true, tx.write(`UPDATE access_token SET revoked_at = ? WHERE id = ?`, toInt(tx.now), token.ULID[:])
}

// TouchAccessToken notes that a token was used now. One that is gone meanwhile is left alone.
func (tx *Tx) TouchAccessToken(token forge.AccessTokenID) error {
	_, err := tx.exec(`UPDATE access_token SET used_at = ? WHERE id = ?`, toInt(tx.now), token.ULID[:])
	return err
}
