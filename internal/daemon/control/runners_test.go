package control

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/trust"
)

func TestARevokedRunnerStaysSo(t *testing.T) {
	w := newWorld(t)
	a := w.agent("a", 1)
	for range 2 {
		r, err := w.SetRunner(w.ctx, a.id, Revoke, "tester")
		if err != nil || !r.Revoked {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	if _, err := w.SetRunner(w.ctx, a.id, Enable, "tester"); !errors.Is(err, ErrRevoked) {
		t.Errorf("enable: %v", err)
	}
	if _, err := w.SetRunner(w.ctx, a.id, "paint", "tester"); !errors.Is(err, ErrVerb) {
		t.Errorf("paint: %v", err)
	}
	if _, err := w.SetRunner(w.ctx, forge.RunnerID{}, Drain, "tester"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}

func TestARunnerIsDeletedOnceItHoldsNothing(t *testing.T) {
	w, a := newWorldAndAgent(t)
	w.submit("a=Waiting")
	w.round(w.ctx)
	c := w.taken(a)
	if err := w.DeleteRunner(w.ctx, a.id, "tester"); !errors.Is(err, store.ErrInUse) {
		t.Fatalf("with a lease: %v", err)
	}
	a.complete(c, good)
	if err := w.DeleteRunner(w.ctx, a.id, "tester"); !errors.Is(err, ErrConnected) {
		t.Fatalf("while it is connected: %v", err)
	}
	w.Disconnected(a.id)
	w.must(w.DeleteRunner(w.ctx, a.id, "tester"))
	w.view(func(v *store.View) error {
		events, _, err := v.Audits(0, 10)
		if len(events) != 1 || events[0].Kind != "runner.delete" || events[0].Subject != "a" || events[0].Actor != "tester" {
			t.Errorf("audit: %+v", events)
		}
		return err
	})
}

func TestOfATokenOnlyItsHashIsStored(t *testing.T) {
	w := newWorld(t)
	before := time.Now()
	stored, secret, err := w.MintToken(w.ctx, TokenRequest{Name: "new", Labels: []string{"big"}, Actor: "tester"})
	after := time.Now()
	w.must(err)
	token, err := trust.ParseToken(secret.Reveal())
	w.must(err)
	if stored.Hash != digest.Digest(token.Hash()) {
		t.Error("the hash is not the token's")
	}
	w.view(func(v *store.View) error {
		got, err := v.Token(stored.Hash)
		if got.Name != "new" || got.Pool != forge.DefaultPool || got.Trust != forge.TrustTrusted || got.Slots != 1 {
			t.Errorf("stored %+v", got)
		}
		expires := time.UnixMilli(int64(got.Expires))
		if expires.Before(before.Add(trust.TokenLifetime).Truncate(time.Millisecond)) || expires.After(after.Add(trust.TokenLifetime)) {
			t.Errorf("it expires at %v", expires)
		}
		events, _, err2 := v.Audits(0, 10)
		for _, e := range events {
			if strings.Contains(e.Detail+e.Subject, string(secret.Reveal())) {
				t.Error("the audit log has the token")
			}
		}
		return errors.Join(err, err2)
	})
}

func TestARunnerIsMadeTogetherWithItsToken(t *testing.T) {
	w := newWorld(t)
	made, token, secret, err := w.CreateRunner(w.ctx, TokenRequest{Name: "r", Slots: 2, Actor: "tester"})
	w.must(err)
	if made.Name != "r" || made.Slots != 2 || made.ID.IsZero() || token.Runner != made.ID || len(secret.Reveal()) == 0 {
		t.Errorf("made %+v with %+v", made, token)
	}
	if _, _, _, err := w.CreateRunner(w.ctx, TokenRequest{Name: "r"}); !errors.Is(err, store.ErrExists) {
		t.Errorf("the same name again: %v", err)
	}
	var found forge.Problems
	if _, _, _, err := w.CreateRunner(w.ctx, TokenRequest{}); !errors.As(err, &found) || found[0].Path != "name" {
		t.Errorf("no name: %v", err)
	}
	w.view(func(v *store.View) error {
		tokens, err := v.Tokens(10)
		if len(tokens) != 1 {
			t.Errorf("%d tokens are stored", len(tokens))
		}
		return err
	})
}

func TestATokenThatCannotMakeARunnerIsRefused(t *testing.T) {
	w := newWorld(t)
	w.agent("taken", 1)
	if _, _, err := w.MintToken(w.ctx, TokenRequest{Name: "taken"}); !errors.Is(err, store.ErrExists) {
		t.Errorf("a name that is taken: %v", err)
	}
	for path, r := range map[string]TokenRequest{
		"name":       {Name: "-"},
		"pool":       {Pool: "no pool"},
		"trust":      {Trust: 9},
		"labels[0]":  {Labels: []string{"?"}},
		"slots":      {Slots: -1},
		"expires_in": {Lifetime: trust.MaxTokenLifetime + time.Second},
	} {
		_, _, err := w.MintToken(w.ctx, r)
		var found forge.Problems
		if !errors.As(err, &found) || found[0].Path != path {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestEveryClassStateAndReasonIsSaidInWords(t *testing.T) {
	for _, c := range forge.Classes() {
		if ClassReason(c) == "ended in a way that is not known" {
			t.Errorf("%v has no words", c)
		}
	}
	for s := forge.RunPlanned; s <= forge.RunError; s++ {
		if RunReason(&store.Run{Run: forge.Run{State: s}}) == "" {
			t.Errorf("run %v has no words", s)
		}
	}
	for s := forge.JobWaiting; s < forge.JobSkipped; s++ {
		if JobReason(&store.Job{Job: forge.Job{State: s}}) == "" {
			t.Errorf("job %v has no words", s)
		}
	}
	for r := forge.RejectDraining; r <= forge.RejectAlreadyTaken; r++ {
		if RejectReason(r) == RejectReason(forge.RejectOther) {
			t.Errorf("%v has no words", r)
		}
	}
}

func TestTheNumbersOfAResultAreSaid(t *testing.T) {
	for want, r := range map[string]forge.Result{
		"it was ended by signal 9 (SIGKILL)":                                             {Class: forge.Signal, Signal: 9},
		"it took longer than it may: 3s":                                                 {Class: forge.TimedOut, Limit: 3000},
		"it needed more memory than it may use: 2 GiB, and got to 2.5 GiB":               {Class: forge.OutOfMemory, Limit: 2 << 30, Peak: 5 << 29},
		"it needed more processes than it may have: 8 processes, and got to 9 processes": {Class: forge.PidsExhausted, Limit: 8, Peak: 9},
		"it ended with exit code 7, in step 2": {Class: forge.ExitCode, ExitCode: 7, Steps: []forge.StepResult{
			{Class: forge.Succeeded}, {Index: 1, Class: forge.ExitCode, ExitCode: 7},
		}},
	} {
		a := store.Attempt{Result: &r}
		a.Authority.State, a.Authority.Outcome = r.Class.AttemptState(), r.Class
		if got := AttemptReason(&a); got != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}

func TestARunnerThatGetsNothingSaysWhoCanChangeThat(t *testing.T) {
	w := newWorld(t)
	a := w.agent("a", 1)
	why := func(want string) {
		t.Helper()
		e, err := w.ExplainRunner(w.ctx, a.id)
		w.must(err)
		if !strings.Contains(e.Summary, want) {
			t.Errorf("%q does not say %q", e.Summary, want)
		}
	}
	set := func(verb Verb) {
		t.Helper()
		_, err := w.SetRunner(w.ctx, a.id, verb, "tester")
		w.must(err)
	}
	why("not connected")
	w.Refused(a.id, forge.CloseVersionMismatch, "server supports 2, agent supports 1")
	why("server supports 2, agent supports 1; install an agent")
	a.connect()
	why("no job waits")
	w.Heartbeat(a.id, forge.AgentDraining, forge.ResourceSummary{})
	why("forgeyard-agent resume")
	set(Drain)
	why("forgeyard runner resume a")
	set(Disable)
	why("forgeyard runner enable a")
	set(Revoke)
	why("it was revoked, which is for good")
}

func TestRefusalsThatAreRememberedAreBounded(t *testing.T) {
	w := newWorld(t)
	first := ident.New[forge.RunnerID]()
	for range maxRefusals {
		w.Refused(ident.New[forge.RunnerID](), forge.CloseTooOld, "old")
	}
	w.Refused(first, forge.CloseTooOld, "old")
	if w.Presence(first).Refused != nil {
		t.Error("one more than the bound is remembered")
	}
}
