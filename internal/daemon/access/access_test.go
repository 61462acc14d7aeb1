package access_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate is Access on a real database, with a clock of its own.
type gate struct {
	*access.Access
	t     *testing.T
	store *store.Store
	log   *bytes.Buffer

	mu   sync.Mutex
	time time.Time
	step time.Duration // by which each look at the clock moves it on
}

func newGate(t *testing.T) *gate {
	t.Helper()
	g := &gate{t: t, log: &bytes.Buffer{}, time: time.Now()}
	s, err := store.Open(t.Context(), t.TempDir(), store.Options{Now: func() forge.WallTime { return forge.WallTime(g.now().UnixMilli()) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	g.store = s
	g.Access = access.New(s, forge.NewSecret([]byte("of the folder")), g.tick, slog.New(slog.NewTextHandler(g.log, nil)))
	return g
}

func (g *gate) now() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.time
}

func (g *gate) tick() time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.time = g.time.Add(g.step)
	return g.time
}

func (g *gate) pass(d time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.time = g.time.Add(d)
}

func (g *gate) create(r access.Request) (store.AccessToken, string) {
	g.t.Helper()
	t, text, err := g.Create(g.t.Context(), r)
	if err != nil {
		g.t.Fatal(err)
	}
	return t, string(text.Reveal())
}

// enter shows something and leaves at the end of the test.
func (g *gate) enter(shown string) (context.Context, access.Who, error) {
	g.t.Helper()
	ctx, who, leave, err := g.Enter(g.t.Context(), shown)
	if err == nil {
		g.t.Cleanup(leave)
	}
	return ctx, who, err
}

func (g *gate) audit() (kinds []string) {
	g.t.Helper()
	err := g.store.View(g.t.Context(), func(v *store.View) error {
		events, _, err := v.Audits(0, 100)
		for _, e := range events {
			kinds = append(kinds, e.Kind+" "+e.Actor+" "+e.Subject)
		}
		return err
	})
	if err != nil {
		g.t.Fatal(err)
	}
	return kinds
}

func TestWhoShowsATokenIsWhomItWasMadeFor(t *testing.T) {
	g := newGate(t)
	made, text := g.create(access.Request{Name: "ci", Role: forge.RoleDeveloper, Actor: "admin"})
	_, who, err := g.enter(text)
	if err != nil || who.Name != "token:ci" || who.Role != forge.RoleDeveloper || who.Trust != forge.TrustTrusted || who.Token.ID != made.ID {
		t.Errorf("the token: %+v, %v", who, err)
	}
	if _, who, err = g.enter("of the folder"); err != nil || who.Name != "admin" || who.Role != forge.RoleAdmin || who.Token != nil {
		t.Errorf("the folder's: %+v, %v", who, err)
	}
	g.SetFolderToken(forge.NewSecret([]byte("another")))
	if _, _, err = g.enter("of the folder"); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("the folder's old one: %v", err)
	}
}

// What is shown is told apart, so that whoever shows it knows what to do; nothing of it comes back or into the log.
func TestWhatIsShownInsteadOfATokenIsToldApart(t *testing.T) {
	g := newGate(t)
	other := newGate(t)
	_, text := g.create(access.Request{Name: "ci", Role: forge.RoleViewer})
	_, foreign := other.create(access.Request{Name: "ci", Role: forge.RoleViewer})
	for _, c := range []struct {
		what, shown string
		want        error
	}{
		{"nothing", "", access.ErrNothing},
		{"a guess", "hunter2", access.ErrUnknown},
		{"a prefix of the folder's", "of the folde", access.ErrUnknown},
		{"a digit too few", text[:len(text)-1], access.ErrTypo},
		{"a digit too many", text + "a", access.ErrTypo},
		{"two digits swapped", text[:20] + string([]byte{text[21], text[20]}) + text[22:], access.ErrTypo},
		{"in capitals", strings.ToUpper(text), access.ErrUnknown},
		{"the prefix alone", access.Prefix, access.ErrTypo},
		{"far too long", access.Prefix + strings.Repeat("a", 100_000), access.ErrTypo},
		{"one of another daemon", foreign, access.ErrUnknown},
		{"one for enrolment", "fy_enroll_abc", access.ErrEnrolment},
	} {
		if c.what == "two digits swapped" && text[20] == text[21] {
			continue // nothing is swapped
		}
		_, who, err := g.enter(c.shown)
		if !errors.Is(err, c.want) || who.Role != 0 {
			t.Errorf("%s: %v, %+v", c.what, err, who)
		}
		if err != nil && len(c.shown) > 9 && strings.Contains(err.Error()+g.log.String(), c.shown[9:]) {
			t.Errorf("%s is told: %v", c.what, err)
		}
	}
}

// The id is no secret; whoever knows only that is nobody, whatever has become of the token.
func TestAnIDWithoutItsSecretIsNobody(t *testing.T) {
	g := newGate(t)
	made, text := g.create(access.Request{Name: "a", Role: forge.RoleAdmin})
	if _, err := g.Revoke(t.Context(), made.ID, "admin"); err != nil {
		t.Fatal(err)
	}
	forged := access.Forge(t, made.ID)
	if forged == text {
		t.Fatal("the forged one is the real one")
	}
	if _, _, err := g.enter(forged); !errors.Is(err, access.ErrUnknown) {
		t.Errorf("a wrong secret with a known id: %v", err)
	}
	var ended *access.EndedError
	if _, _, err := g.enter(text); !errors.As(err, &ended) || !ended.Revoked || ended.Name != "a" {
		t.Errorf("the real one: %v", err)
	}
}

func TestATokenIsGoodUntilItsEndAndNotAtIt(t *testing.T) {
	g := newGate(t)
	made, text := g.create(access.Request{Name: "ci", Role: forge.RoleDeveloper, Lifetime: time.Hour})
	g.pass(time.Hour - time.Millisecond)
	if _, _, err := g.enter(text); err != nil {
		t.Errorf("a moment before: %v", err)
	}
	g.pass(time.Millisecond)
	var ended *access.EndedError
	if _, _, err := g.enter(text); !errors.As(err, &ended) || ended.Revoked || ended.At != made.Expires || ended.Role != forge.RoleDeveloper {
		t.Errorf("at its end: %v", err)
	}
}

func TestWhatIsUnderWayEndsWhenItsTokenExpires(t *testing.T) {
	g := newGate(t)
	_, text := g.create(access.Request{Name: "ci", Role: forge.RoleViewer, Lifetime: 90 * time.Minute})
	g.step = time.Hour // good when it is looked at, and over when its end is waited for
	ctx, _, err := g.enter(text)
	if err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	var ended *access.EndedError
	if !errors.As(context.Cause(ctx), &ended) || ended.Revoked {
		t.Errorf("it ended because of %v", context.Cause(ctx))
	}
}

func TestWhatIsUnderWayEndsWhenItsTokenIsRevokedAndNothingElseDoes(t *testing.T) {
	g := newGate(t)
	made, text := g.create(access.Request{Name: "a", Role: forge.RoleViewer, Actor: "admin"})
	_, other := g.create(access.Request{Name: "b", Role: forge.RoleViewer, Actor: "admin"})
	first, _, err := g.enter(text)
	if err != nil {
		t.Fatal(err)
	}
	second, _, _ := g.enter(text)
	bystander, _, _ := g.enter(other)
	for range 2 {
		if _, err := g.Revoke(t.Context(), made.ID, "token:boss"); err != nil {
			t.Fatal(err)
		}
	}
	<-first.Done()
	<-second.Done()
	var ended *access.EndedError
	if !errors.As(context.Cause(first), &ended) || !ended.Revoked || ended.Name != "a" {
		t.Errorf("it ended because of %v", context.Cause(first))
	}
	if bystander.Err() != nil {
		t.Errorf("another token's ended too: %v", context.Cause(bystander))
	}
	want := "token.revoke token:boss token:a, token.create admin token:b, token.create admin token:a"
	if got := strings.Join(g.audit(), ", "); got != want {
		t.Errorf("audit events: %s", got)
	}
}

func TestTheUseOfATokenIsWrittenDownOnceAnHour(t *testing.T) {
	g := newGate(t)
	made, text := g.create(access.Request{Name: "ci", Role: forge.RoleViewer})
	used := func() (at forge.WallTime) {
		err := g.store.View(t.Context(), func(v *store.View) error {
			one, err := v.AccessToken(made.ID)
			at = one.Used
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	if used() != 0 {
		t.Error("it was used before it was")
	}
	_, _, _ = g.enter(text)
	first := used()
	g.pass(59 * time.Minute)
	_, _, _ = g.enter(text)
	if first == 0 || used() != first {
		t.Errorf("used at %d, and within the hour at %d", first, used())
	}
	g.pass(time.Minute)
	_, _, _ = g.enter(text)
	if got := used(); got != first+3_600_000 {
		t.Errorf("an hour after %d it is %d", first, got)
	}
}

func TestWhatCannotBeATokenIsRefusedInWords(t *testing.T) {
	g := newGate(t)
	for _, c := range []struct {
		request access.Request
		path    string
	}{
		{access.Request{Name: "", Role: forge.RoleViewer}, "name"},
		{access.Request{Name: "a b", Role: forge.RoleViewer}, "name"},
		{access.Request{Name: strings.Repeat("n", 300), Role: forge.RoleViewer}, "name"},
		{access.Request{Name: "a"}, "role"},
		{access.Request{Name: "a", Role: 9}, "role"},
		{access.Request{Name: "a", Role: forge.RoleDeveloper, Trust: 9}, "trust"},
		{access.Request{Name: "a", Role: forge.RoleViewer, Trust: forge.TrustTrusted}, "trust"},
		{access.Request{Name: "a", Role: forge.RoleViewer, Lifetime: -1}, "expires_in"},
		{access.Request{Name: "a", Role: forge.RoleViewer, Lifetime: access.MaxLifetime + 1}, "expires_in"},
	} {
		_, _, err := g.Create(t.Context(), c.request)
		var found forge.Problems
		if !errors.As(err, &found) || len(found) != 1 || found[0].Path != c.path {
			t.Errorf("%+v: %v", c.request, err)
		}
	}
	if len(g.audit()) != 0 {
		t.Errorf("audit events of what was refused: %v", g.audit())
	}
}

// Threat S23: how far a run is trusted follows from the token, which an administrator made.
func TestTheTrustOfRunsFollowsFromTheTokenThatAnAdministratorMade(t *testing.T) {
	g := newGate(t)
	for _, c := range []struct {
		request access.Request
		want    forge.TrustClass
	}{
		{access.Request{Name: "viewer", Role: forge.RoleViewer}, forge.TrustUntrusted},
		{access.Request{Name: "developer", Role: forge.RoleDeveloper}, forge.TrustTrusted},
		{access.Request{Name: "admin", Role: forge.RoleAdmin}, forge.TrustTrusted},
		{access.Request{Name: "strangers", Role: forge.RoleDeveloper, Trust: forge.TrustUntrusted}, forge.TrustUntrusted},
		{access.Request{Name: "release", Role: forge.RoleDeveloper, Trust: forge.TrustProtected}, forge.TrustProtected},
	} {
		_, text := g.create(c.request)
		if _, who, err := g.enter(text); err != nil || who.Trust != c.want {
			t.Errorf("%s: %v, %v", c.request.Name, who.Trust, err)
		}
	}
}
