package store_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

func TestARunnerIsKeptWithWhatItAndItsAdministratorSay(t *testing.T) {
	y := newYard(t)
	f := y.runner("one")
	registered := y.now
	caps := forge.Capabilities{
		SchemaVersion: 1, Platform: forge.Platform{OS: "linux", Arch: "amd64", Version: "6.1"},
		Resources:  forge.Resources{CPU: 2000, Memory: forge.MaxMemory, Disk: forge.GiB, Slots: 4},
		Toolchains: []forge.Toolchain{{ID: "go", Version: "1.26", Source: forge.ToolchainHost, Warm: true}},
		Sandboxes:  []forge.Sandbox{{Kind: forge.SandboxNative, Levels: []string{"landlock"}}},
		Devices:    []forge.DeviceCount{{Kind: "gpu", Count: 2}}, Labels: []string{"site.a"}, Features: []string{"network.host"},
	}
	summary := forge.ResourceSummary{Total: caps.Resources, Pressure: forge.PressureDisk}
	health := forge.HealthOf([]forge.HealthCheck{{Kind: forge.CheckClock, Status: forge.Degraded, Detail: "steps"}})
	y.later(func(tx *store.Tx) error {
		slots, labels, reserved := 7, []string{"slow", "old"}, forge.Resources{CPU: 500}
		return errors.Join(
			tx.SetCapabilities(f.Runner, caps, caps.Digest()), tx.SetSummary(f.Runner, summary), tx.SetHealth(f.Runner, health),
			tx.ChangeRunner(f.Runner, store.RunnerChange{Slots: &slots, Labels: &labels, Reserved: &reserved}))
	})
	changed := y.now
	y.rule(&authority.Touch{Fence: f})
	y.rule(&authority.SetRunner{Runner: f.Runner, Draining: true})
	want := store.Runner{
		Runner: forge.Runner{
			ID: f.Runner, Name: "one", Pool: "default", Trust: forge.TrustTrusted, Labels: []string{"slow", "old"}, Draining: true,
			Reserved: forge.Resources{CPU: 500}, Version: "1.0",
		},
		Slots: 7, Created: registered - 1000,
		Session: authority.Session{Runner: f.Runner, Session: f.Session, StartCounter: 1, TransportSeq: 1, Version: "1.0"},
		Seen:    changed + 1000, Summary: summary, Health: health,
		Capabilities: caps, CapabilitiesAt: changed, CapabilityID: caps.Digest(),
	}
	y.see(func(v *store.View) error {
		byID, err := v.Runner(f.Runner)
		byName, err2 := v.RunnerByName("one")
		all, err3 := v.Runners(forge.RunnerID{}, 10)
		if d := cmp.Diff([]store.Runner{want, want, want}, append(all, byID, byName), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("runner (-want +got)\n%s", d)
		}
		return errors.Join(err, err2, err3)
	})
}

func TestNamesOfRunnersAreUniqueUntilTheRunnerIsDeleted(t *testing.T) {
	y := newYard(t)
	f := y.runner("one")
	second := store.NewRunner{ID: ident.New[forge.RunnerID](), Name: "one", Pool: "default", Trust: forge.TrustTrusted, Slots: 1}
	create := func(tx *store.Tx) error { return tx.CreateRunner(second) }
	if err := y.try(create); !errors.Is(err, store.ErrExists) {
		t.Errorf("a second one with its name: %v", err)
	}
	n := submission("")
	y.submit(n)
	y.settle(n.ID, plan("build"))
	c := y.offer(f, n.Jobs[0].ID)
	remove := func(tx *store.Tx) error { return tx.DeleteRunner(f.Runner) }
	if err := y.try(remove); !errors.Is(err, store.ErrInUse) {
		t.Errorf("deleted with an open lease: %v", err)
	}
	y.see(func(v *store.View) error {
		open, err := v.OpenLeases(forge.RunnerID{})
		if len(open) != 1 || open[0].Lease.Context != c || open[0].Job != "build" || open[0].Run != n.ID || open[0].Project != n.Project {
			t.Errorf("open leases: %+v", open)
		}
		return err
	})
	y.rule(&authority.Reject{Fence: f, Context: c, Reason: forge.RejectOther})
	y.later(remove)
	y.later(create)
	if err := y.View(t.Context(), func(v *store.View) error { _, err := v.Runner(f.Runner); return err }); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("after it was deleted: %v", err)
	}
	if a := y.attempts(n.Jobs[0].ID); len(a) != 1 || a[0].Lease.Context.Runner != f.Runner {
		t.Errorf("its attempts: %+v", a)
	}
	// Whatever still speaks for it is fenced, and a new process is told that it is revoked.
	for cmd, want := range map[authority.Command]forge.CloseReason{
		&authority.Touch{Fence: f}: forge.CloseSessionSuperseded,
		&authority.Register{Runner: f.Runner, Session: f.Session, StartCounter: 2, TransportSeq: 2}: forge.CloseRevoked,
	} {
		if answer, err := y.Do(t.Context(), store.ClassLease, cmd); err != nil || answer.Close != want {
			t.Errorf("%T: %+v, %v", cmd, answer, err)
		}
	}
}

func TestWhatIsWrongAboutARunnerIsSaid(t *testing.T) {
	y := newYard(t)
	good := store.NewRunner{ID: ident.New[forge.RunnerID](), Name: "one", Pool: "default", Trust: forge.TrustTrusted, Slots: 1}
	for what, spoil := range map[string]func(*store.NewRunner){
		"no name": func(n *store.NewRunner) { n.Name = "" }, "no pool": func(n *store.NewRunner) { n.Pool = "" },
		"no trust": func(n *store.NewRunner) { n.Trust = 0 }, "no slots": func(n *store.NewRunner) { n.Slots = 0 },
		"too many slots": func(n *store.NewRunner) { n.Slots = int(forge.MaxSlots) + 1 },
	} {
		n := good
		spoil(&n)
		if err := y.try(func(tx *store.Tx) error { return tx.CreateRunner(n) }); !errors.Is(err, forge.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, change := range map[string]func(*store.Tx) error{
		"change": func(tx *store.Tx) error { return tx.ChangeRunner(good.ID, store.RunnerChange{}) },
		"delete": func(tx *store.Tx) error { return tx.DeleteRunner(good.ID) },
		"health": func(tx *store.Tx) error { return tx.SetHealth(good.ID, forge.Health{}) },
	} {
		if err := y.try(change); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s of a runner that is not there: %v", what, err)
		}
	}
}

// token stores an enrolment token and returns a redemption of it by a fresh key.
func (y *yard) token(change func(*store.Token)) store.Redemption {
	y.t.Helper()
	secret := ident.New[forge.MessageID]()
	token := store.Token{
		Hash: digest.Of(secret.ULID[:]), Pool: "default", Trust: forge.TrustTrusted, Labels: []string{"new"}, Slots: 3, Creator: "ada",
		Expires: y.now + 60_000,
	}
	if change != nil {
		change(&token)
	}
	y.later(func(tx *store.Tx) error { return tx.CreateToken(token) })
	runner := ident.New[forge.RunnerID]()
	return store.Redemption{Token: token.Hash, Key: digest.Of(runner.ULID[:]), Runner: runner, Name: "wish", Now: y.now}
}

func (y *yard) redeem(r store.Redemption) (runner store.Runner, again bool, err error) {
	err = y.try(func(tx *store.Tx) (err error) { runner, again, err = tx.RedeemToken(r); return err })
	return runner, again, err
}

func TestATokenMakesOneRunnerForOneKey(t *testing.T) {
	y := newYard(t)
	r := y.token(nil)
	first, again, err := y.redeem(r)
	if err != nil || again || first.ID != r.Runner || first.Name != "wish" || first.Slots != 3 || !slices.Equal(first.Labels, []string{"new"}) {
		t.Fatalf("redeemed: %+v, again %v, %v", first, again, err)
	}
	// The answer was lost: the same key asks again, after the token's end, with a new id.
	lost := r
	lost.Runner, lost.Now = ident.New[forge.RunnerID](), y.now+1_000_000
	if second, again, err := y.redeem(lost); err != nil || !again || second.ID != first.ID {
		t.Errorf("the same key again: %+v, again %v, %v", second, again, err)
	}
	thief := r
	thief.Key = digest.Of([]byte("thief"))
	if _, _, err := y.redeem(thief); !errors.Is(err, store.ErrUsed) {
		t.Errorf("another key: %v", err)
	}
	if err := y.try(func(tx *store.Tx) error { return tx.DeleteToken(r.Token) }); !errors.Is(err, store.ErrUsed) {
		t.Errorf("taken back after its use: %v", err)
	}
	y.see(func(v *store.View) error {
		runners, err := v.Runners(forge.RunnerID{}, 10)
		owner, err2 := v.RunnerByKey(r.Key)
		if len(runners) != 1 || owner.ID != first.ID {
			t.Errorf("%d runners, the key's is %v", len(runners), owner.ID)
		}
		return errors.Join(err, err2)
	})
}

func TestATokenIsRefusedForAReasonAndThenChangesNothing(t *testing.T) {
	y := newYard(t)
	existing := y.runner("existing")
	bound := func(tk *store.Token) { tk.Runner = existing.Runner }
	holder := y.token(nil)
	if _, _, err := y.redeem(holder); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		what  string
		token func(*store.Token)
		spoil func(*store.Redemption)
		want  error
	}{
		{"not known", nil, func(r *store.Redemption) { r.Token = digest.Of([]byte("guess")) }, store.ErrNotFound},
		{"at its end", nil, func(r *store.Redemption) { r.Now = y.now - 1000 + 60_000 }, store.ErrExpired},
		{"with the key of another runner", nil, func(r *store.Redemption) { r.Key = holder.Key }, store.ErrKeyTaken},
		{"bound, with the key of another runner", bound, func(r *store.Redemption) { r.Key = holder.Key }, store.ErrKeyTaken},
		{"bound to a disabled runner", bound, func(*store.Redemption) {
			y.rule(&authority.SetRunner{Runner: existing.Runner, Disabled: true})
		}, store.ErrDisabled},
		{"bound to a revoked runner", bound, func(*store.Redemption) {
			y.rule(&authority.SetRunner{Runner: existing.Runner, Revoked: true})
		}, store.ErrRevoked},
	} {
		r := y.token(test.token)
		good := r
		test.spoil(&r)
		if _, _, err := y.redeem(r); !errors.Is(err, test.want) {
			t.Errorf("%s: %v, want %v", test.what, err, test.want)
		}
		y.see(func(v *store.View) error {
			tk, err := v.Token(good.Token)
			if !tk.UsedBy.IsZero() {
				t.Errorf("%s: the token is used up", test.what)
			}
			return err
		})
	}
}

func TestABoundTokenGivesItsRunnerANewKey(t *testing.T) {
	y := newYard(t)
	f := y.runner("one")
	for range 2 {
		r := y.token(func(tk *store.Token) { tk.Runner = f.Runner })
		if got, _, err := y.redeem(r); err != nil || got.ID != f.Runner || got.Name != "one" {
			t.Fatalf("redeemed: %+v, %v", got, err)
		}
		y.see(func(v *store.View) error {
			owner, err := v.RunnerByKey(r.Key)
			if owner.ID != f.Runner {
				t.Errorf("the key is that of %v", owner.ID)
			}
			return err
		})
	}
}

func TestAWishForANameIsOnlyAWish(t *testing.T) {
	y := newYard(t)
	y.runner("wish")
	for wish, want := range map[string]string{"wish": "wish-", "": "runner-", "Not a name!": "runner-", strings.Repeat("n", 64): strings.Repeat("n", 64)} {
		r := y.token(nil)
		r.Name = wish
		if got, _, err := y.redeem(r); err != nil || !strings.HasPrefix(got.Name, want) {
			t.Errorf("wished %q: got %q, %v", wish, got.Name, err)
		}
	}
	r := y.token(func(tk *store.Token) { tk.Name = "given" })
	if got, _, err := y.redeem(r); err != nil || got.Name != "given" {
		t.Errorf("the token's name: got %q, %v", got.Name, err)
	}
}

func TestTokensAreListedAndTakenBack(t *testing.T) {
	y := newYard(t)
	old, young := y.token(nil), y.token(nil)
	y.see(func(v *store.View) error {
		tokens, err := v.Tokens(10)
		if len(tokens) != 2 || tokens[0].Hash != young.Token || tokens[1].Hash != old.Token || tokens[0].Created != y.now {
			t.Errorf("tokens: %+v", tokens)
		}
		return err
	})
	y.later(func(tx *store.Tx) error { return tx.DeleteToken(old.Token) })
	if _, _, err := y.redeem(old); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("redeemed after it was taken back: %v", err)
	}
	if err := y.try(func(tx *store.Tx) error { return tx.CreateToken(store.Token{Hash: young.Token}) }); !errors.Is(err, store.ErrExists) {
		t.Errorf("the same secret twice: %v", err)
	}
}

func TestACertificateSupersedesOlderOnesByItsFirstUse(t *testing.T) {
	y := newYard(t)
	r := y.token(nil)
	if _, _, err := y.redeem(r); err != nil {
		t.Fatal(err)
	}
	cert := func(serial string) store.Certificate {
		return store.Certificate{Serial: serial, Runner: r.Runner, Key: r.Key, NotBefore: 1, NotAfter: 2}
	}
	record := func(c store.Certificate) error {
		return y.try(func(tx *store.Tx) error { return tx.RecordCertificate(c) })
	}
	use := func(serial string) (use store.CertificateUse, err error) {
		err = y.try(func(tx *store.Tx) (err error) { use, err = tx.UseCertificate(cert(serial)); return err })
		return use, err
	}
	for _, serial := range []string{"01", "02", "02"} {
		if err := record(cert(serial)); err != nil {
			t.Fatal(err)
		}
	}
	if u, err := use("01"); err != nil || !u.First {
		t.Errorf("the older one before the newer was used: %+v, %v", u, err)
	}
	if u, err := use("01"); err != nil || u.First {
		t.Errorf("the same again: %+v, %v", u, err)
	}
	if u, err := use("02"); err != nil || !u.First || u.Unrecorded {
		t.Errorf("the newer one: %+v, %v", u, err)
	}
	if _, err := use("01"); !errors.Is(err, store.ErrSuperseded) {
		t.Errorf("the older one after it: %v", err)
	}
	if u, err := use("03"); err != nil || !u.Unrecorded || !u.First {
		t.Errorf("one that is not known: %+v, %v", u, err)
	}
	stranger := cert("04")
	stranger.Key = digest.Of([]byte("stranger"))
	if err := record(stranger); !errors.Is(err, store.ErrKeyUnknown) {
		t.Errorf("for a key that is not the runner's: %v", err)
	}
	y.see(func(v *store.View) error {
		list, err := v.Certificates(r.Runner, 10)
		var got []string
		for _, c := range list {
			got = append(got, c.Serial+map[bool]string{true: "-", false: "+"}[c.Superseded])
		}
		if want := []string{"03+", "02-", "01-"}; !slices.Equal(got, want) {
			t.Errorf("certificates %q, want %q", got, want)
		}
		return err
	})
	y.rule(&authority.SetRunner{Runner: r.Runner, Revoked: true})
	if _, err := use("03"); !errors.Is(err, store.ErrRevoked) {
		t.Errorf("of a revoked runner: %v", err)
	}
	if err := record(cert("05")); !errors.Is(err, store.ErrRevoked) {
		t.Errorf("recorded for a revoked runner: %v", err)
	}
}
