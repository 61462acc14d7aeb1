package access

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Bounds of what the use of a token writes.
const (
	// usedEvery is how old the time of its last use may be that a token has in the database.
	usedEvery = time.Hour
	// usedWithin bounds the writing of it, which a request waits for.
	usedWithin = 2 * time.Second
)

// Who is who asks. The zero value may do nothing.
type Who struct {
	Name  string // as audit events and runs have it: "admin", "socket" or "token:NAME"
	Role  forge.Role
	Trust forge.TrustClass // of the runs that are submitted
	// Token is the access token that was shown; nil: none, but what only the owner of the folder has.
	Token *store.AccessToken
}

// Socket is who comes by the socket of the daemon's folder.
func Socket() Who {
	return Who{Name: "socket", Role: forge.RoleAdmin, Trust: forge.TrustTrusted}
}

func owner() Who { return Who{Name: "admin", Role: forge.RoleAdmin, Trust: forge.TrustTrusted} }

// whoOf is who shows a token.
func whoOf(t *store.AccessToken) Who {
	return Who{Name: "token:" + t.Name, Role: t.Role, Trust: t.Trust, Token: t}
}

// Errors of showing something.
var (
	ErrNothing = errors.New("no token was shown")
	ErrUnknown = errors.New("is none of this daemon")
)

// EndedError says that a token was good once. It is the cause of the contexts of Enter that end for that.
type EndedError struct {
	Name    string
	Role    forge.Role
	At      forge.WallTime // when it ended
	Revoked bool           // by somebody; else its time was over
}

func (e *EndedError) Error() string {
	how := "expired"
	if e.Revoked {
		how = "was revoked"
	}
	return fmt.Sprintf("token %q %s on %s", e.Name, how, time.UnixMilli(int64(e.At)).UTC().Format("2006-01-02 15:04:05 UTC"))
}

// Rows is the part of the database that is used here; see store.Store for the contract of each method.
type Rows interface {
	View(ctx context.Context, read func(v *store.View) error) error
	Update(ctx context.Context, class store.Class, change func(tx *store.Tx) error) error
}

// Access knows who may ask.
type Access struct {
	rows  Rows
	now   func() time.Time
	log   *slog.Logger
	owner atomic.Pointer[[sha256.Size]byte] // hash of the token of the daemon's folder

	mu     sync.Mutex
	inside map[forge.AccessTokenID]map[*visit]struct{} // who is under way with which token
	used   map[forge.AccessTokenID]forge.WallTime      // when a use was to be written down; of the last hour or so
}

// visit is a request under way.
type visit struct{ cancel context.CancelCauseFunc }

// New returns what knows the token of the daemon's folder and the access tokens in a database. A nil log is silent.
func New(rows Rows, folder forge.Secret, now func() time.Time, log *slog.Logger) *Access {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &Access{
		rows: rows, now: now, log: log,
		inside: map[forge.AccessTokenID]map[*visit]struct{}{}, used: map[forge.AccessTokenID]forge.WallTime{},
	}
	a.SetFolderToken(folder)
	return a
}

// SetFolderToken changes what the owner of the daemon's folder shows, from the next request on.
func (a *Access) SetFolderToken(token forge.Secret) {
	sum := sha256.Sum256(token.Reveal())
	a.owner.Store(&sum)
}

// Enter finds out who shows a token. The context that it returns ends, with an *EndedError for its cause, when the token does.
// The caller calls leave when the request is over. The errors are ErrNothing, ErrUnknown, ErrTypo, ErrVersion, ErrEnrolment, an
// *EndedError, or the database's; then there is nothing to leave.
func (a *Access) Enter(ctx context.Context, shown string) (in context.Context, who Who, leave func(), err error) {
	sum := sha256.Sum256([]byte(shown)) // of the same length whatever was shown
	switch {
	case shown == "":
		return nil, Who{}, nil, ErrNothing
	case subtle.ConstantTimeCompare(sum[:], a.owner.Load()[:]) == 1:
		return ctx, owner(), func() {}, nil
	case strings.HasPrefix(shown, enrolmentPrefix):
		return nil, Who{}, nil, ErrEnrolment
	case !looksLike(shown):
		return nil, Who{}, nil, ErrUnknown
	}
	k, err := parse(shown)
	if err != nil {
		return nil, Who{}, nil, err
	}
	// Inside before the look at the database: whoever revokes the token after that look finds this visit.
	in, cancel := context.WithCancelCause(ctx)
	v := &visit{cancel}
	a.enter(k.id, v)
	leave = func() { a.leave(k.id, v); cancel(nil) }
	t, err := a.check(ctx, k)
	if err != nil {
		leave()
		return nil, Who{}, nil, err
	}
	if t.Expires != 0 {
		left := time.UnixMilli(int64(t.Expires)).Sub(a.now())
		timer := time.AfterFunc(left, func() { cancel(&EndedError{t.Name, t.Role, t.Expires, false}) })
		outer := leave
		leave = func() { timer.Stop(); outer() }
	}
	a.noteUse(ctx, &t)
	return in, whoOf(&t), leave, nil
}

// check compares a token with the stored one.
func (a *Access) check(ctx context.Context, k key) (t store.AccessToken, err error) {
	err = a.rows.View(ctx, func(v *store.View) (err error) {
		t, err = v.AccessToken(k.id)
		return err
	})
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return t, err
	}
	now := forge.WallTime(a.now().UnixMilli())
	switch same := subtle.ConstantTimeCompare(t.Hash[:], k.secret[:]) == 1; {
	case err != nil || !same:
		return t, ErrUnknown
	case t.Revoked != 0:
		return t, &EndedError{t.Name, t.Role, t.Revoked, true}
	case t.Expired(now):
		return t, &EndedError{t.Name, t.Role, t.Expires, false}
	}
	return t, nil
}

func (a *Access) enter(id forge.AccessTokenID, v *visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.inside[id] == nil {
		a.inside[id] = map[*visit]struct{}{}
	}
	a.inside[id][v] = struct{}{}
}

func (a *Access) leave(id forge.AccessTokenID, v *visit) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.inside[id], v)
	if len(a.inside[id]) == 0 {
		delete(a.inside, id)
	}
}

// turnOut ends whatever is under way with a token.
func (a *Access) turnOut(id forge.AccessTokenID, why error) {
	a.mu.Lock()
	visits := a.inside[id]
	cancels := make([]context.CancelCauseFunc, 0, len(visits))
	for v := range visits {
		cancels = append(cancels, v.cancel)
	}
	a.mu.Unlock()
	for _, cancel := range cancels {
		cancel(why)
	}
}

// noteUse writes down, now and then, that a token is used. A failure is no matter of the request.
func (a *Access) noteUse(ctx context.Context, t *store.AccessToken) {
	now := forge.WallTime(a.now().UnixMilli())
	if !a.dueUse(t, now) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, usedWithin)
	defer cancel()
	err := a.rows.Update(ctx, store.ClassRest, func(tx *store.Tx) error { return tx.TouchAccessToken(t.ID) })
	if err != nil {
		a.log.Warn("that a token was used could not be written down", telemetry.KeyError, err)
	}
}

// dueUse reports whether the use of a token is to be written down, and forgets what it knows of those that were used long ago.
func (a *Access) dueUse(t *store.AccessToken, now forge.WallTime) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	fresh := func(at forge.WallTime) bool { return at <= now && now-at < forge.WallTime(usedEvery.Milliseconds()) }
	if fresh(t.Used) || fresh(a.used[t.ID]) {
		return false
	}
	maps.DeleteFunc(a.used, func(_ forge.AccessTokenID, at forge.WallTime) bool { return !fresh(at) })
	a.used[t.ID] = now
	return true
}
