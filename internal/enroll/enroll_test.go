package enroll_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/enroll/enrolltest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

func TestTheStoreInMemoryKeepsToTheContract(t *testing.T) {
	enrolltest.Store(t, func(*testing.T) enrolltest.Admin { return enrolltest.NewMemory() })
}

func TestAnAgentEnrolsWithATokenAndIsSomebody(t *testing.T) {
	y := newYard(t, nil)
	key := trusttest.NewKey(t)
	id, err := y.enrol(y.mint(), key)
	if err != nil {
		t.Fatal(err)
	}
	if id.Runner().IsZero() || id.Cluster() != trusttest.Name || !id.Roots().Has(y.CA.Fingerprint()) {
		t.Errorf("it is %v", id)
	}
	if want := y.clock().Add(trust.RunnerLifetime); !id.Leaf().NotAfter.Equal(want) {
		t.Errorf("until %v, want %v", id.Leaf().NotAfter, want)
	}
	events := y.heard()
	if len(events) != 1 || events[0].Kind != enroll.EventEnrolled || events[0].Runner != id.Runner() || events[0].Addr != home {
		t.Errorf("events %+v", events)
	}
	certs := y.store.Recorded(id.Runner())
	if serial, _ := trust.SerialOf(id.Leaf()); len(certs) != 1 || certs[0].Serial != serial || certs[0].Key != trust.KeyIDOf(id.Leaf()) {
		t.Errorf("recorded %+v", certs)
	}
	if err := y.use(id.Leaf()); err != nil {
		t.Error(err)
	}
}

// TestAnAnswerThatWasLostIsGivenAgain: the same token with the same key is the same runner, also after the token's end.
func TestAnAnswerThatWasLostIsGivenAgain(t *testing.T) {
	y := newYard(t, nil)
	token, key := y.mint(), trusttest.NewKey(t)
	first, err := y.enrol(token, key)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		y.pass(10 * time.Minute)
		id, err := y.enrol(token, key)
		if err != nil || id.Runner() != first.Runner() {
			t.Fatalf("%v, %v, want %v", id, err, first)
		}
	}
	if n := y.store.Runners(); n != 1 {
		t.Errorf("%d runners", n)
	}
}

func TestARequestThatIsRepeatedWithoutEndGetsOneCertificate(t *testing.T) {
	y := newYard(t, nil)
	id := y.member()
	for range 100 {
		next, err := y.renew(id)
		if err != nil || !next.Leaf().Equal(id.Leaf()) {
			t.Fatalf("%v, %v", next, err)
		}
	}
	y.pass(time.Minute)
	if next, err := y.renew(id); err != nil || next.Leaf().Equal(id.Leaf()) {
		t.Errorf("after a while there is no other one: %v", err)
	}
	if n := len(y.store.Recorded(id.Runner())); n != 2 {
		t.Errorf("%d certificates are recorded", n)
	}
}

func TestAnEnrolmentIsRefusedWithAReasonAndASentence(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(*yard, *trust.Token, trust.Key)
		reason forge.CloseReason
		text   string
	}{
		"a token that nobody made": {func(y *yard, token *trust.Token, _ trust.Key) {
			*token = y.CA.Mint()
		}, forge.CloseAuthFailed, "not known"},
		"a token used by another key": {func(y *yard, token *trust.Token, _ trust.Key) {
			if _, err := y.enrol(*token, trusttest.NewKey(y.t)); err != nil {
				y.t.Fatal(err)
			}
		}, forge.CloseAuthFailed, "used already"},
		"a token that has expired": {func(y *yard, _ *trust.Token, _ trust.Key) {
			y.pass(trust.TokenLifetime)
		}, forge.CloseAuthFailed, "expired"},
		"a token of another cluster": {func(y *yard, token *trust.Token, _ trust.Key) {
			*token = trusttest.NewWorld(y.t, "other-yard", enrolltest.Now).CA.Mint()
		}, forge.CloseAuthFailed, "another cluster"},
		"a key of another runner": {func(y *yard, _ *trust.Token, key trust.Key) {
			if _, err := y.enrol(y.mint(), key); err != nil {
				y.t.Fatal(err)
			}
		}, forge.CloseAuthFailed, "another runner"},
		"a runner that is disabled": {func(y *yard, token *trust.Token, key trust.Key) {
			id, err := y.enrol(*token, key)
			if err != nil {
				y.t.Fatal(err)
			}
			y.store.SetRunner(id.Runner(), true, false)
		}, forge.CloseRunnerDisabled, "disabled"},
		"a runner that is revoked": {func(y *yard, token *trust.Token, key trust.Key) {
			id, err := y.enrol(*token, key)
			if err != nil {
				y.t.Fatal(err)
			}
			y.store.SetRunner(id.Runner(), false, true)
		}, forge.CloseRevoked, "revoked"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t, nil)
			y.t = t
			token, key := y.mint(), trusttest.NewKey(t)
			test.spoil(y, &token, key)
			y.heard()
			_, err := y.enrol(token, key)
			if reasonOf(err) != test.reason || !strings.Contains(err.Error(), test.text) {
				t.Errorf("%v, want %v and %q", err, test.reason, test.text)
			}
			events := y.heard()
			if len(events) != 1 || events[0].Kind != enroll.EventEnrolRefused || events[0].Reason != test.reason || events[0].Addr != home {
				t.Errorf("events %+v", events)
			}
			secret := token.Reveal()[50:]
			if strings.Contains(err.Error(), secret) || strings.Contains(y.log.String(), secret) || strings.Contains(events[0].Why, secret) {
				t.Error("the token was printed")
			}
		})
	}
}

func TestARequestThatProvesNothingIsRefused(t *testing.T) {
	y := newYard(t, nil)
	w := request(t, trusttest.NewKey(t))
	w.Token = protocol.NewSecret([]byte(y.mint().Reveal()))
	w.Request[len(w.Request)-1] ^= 1
	if _, err := y.desk.Enroll(t.Context(), w); !errors.Is(err, trust.ErrRequest) {
		t.Error(err)
	}
	w = request(t, trusttest.NewKey(t))
	w.Token = protocol.NewSecret([]byte("fy_enroll_aaaa"))
	if _, err := y.desk.Enroll(t.Context(), w); !errors.Is(err, trust.ErrTokenTypo) {
		t.Error(err)
	}
	y.expect(enroll.EventEnrolRefused, enroll.EventEnrolRefused)
	if n := y.store.Runners(); n != 0 {
		t.Errorf("%d runners", n)
	}
}

// TestOfTwoAgentsWithOneTokenOneEnrols is S03 over the road; the store's suite has the 1,000 races.
func TestOfTwoAgentsWithOneTokenOneEnrols(t *testing.T) {
	y := newYard(t, func(_ *enroll.DeskConfig, c *enroll.CounterConfig) {
		c.PerSecond, c.Burst, c.PrefixRate, c.PrefixBurst = 1, 1000, 1, 1000
	})
	for range 50 {
		token := y.mint()
		var errs [2]error
		var both sync.WaitGroup
		for i := range errs {
			key := trusttest.NewKey(t)
			both.Go(func() { _, errs[i] = y.enrol(token, key) })
		}
		both.Wait()
		if (errs[0] == nil) == (errs[1] == nil) || reasonOf(errors.Join(errs[:]...)) != forge.CloseAuthFailed {
			t.Fatalf("%v and %v", errs[0], errs[1])
		}
	}
	if n := y.store.Runners(); n != 50 {
		t.Errorf("%d runners of 50 tokens", n)
	}
}

// TestAFaultOfOursIsSaidWithoutItsCause also holds that no audit event blames the peer for it.
func TestAFaultOfOursIsSaidWithoutItsCause(t *testing.T) {
	y := newYard(t, func(d *enroll.DeskConfig, _ *enroll.CounterConfig) { d.Store = broken{d.Store} })
	_, err := y.enrol(y.mint(), trusttest.NewKey(t))
	if reasonOf(err) != forge.CloseInternal || strings.Contains(err.Error(), "disk") {
		t.Error(err)
	}
	if !strings.Contains(y.log.String(), "disk full") {
		t.Error("our log does not say why")
	}
	y.expect()
}

type broken struct{ enroll.Store }

func (broken) RedeemToken(context.Context, enroll.Redemption) (enroll.Grant, error) {
	return enroll.Grant{}, errors.New("disk full")
}

// TestNobodyGetsACertificateThatIsNotRecorded: it could not be superseded.
func TestNobodyGetsACertificateThatIsNotRecorded(t *testing.T) {
	y := newYard(t, func(d *enroll.DeskConfig, _ *enroll.CounterConfig) { d.Store = unrecording{d.Store} })
	if _, err := y.enrol(y.mint(), trusttest.NewKey(t)); err == nil {
		t.Error("it got one")
	}
}

type unrecording struct{ enroll.Store }

func (unrecording) RecordCertificate(context.Context, enroll.Certificate) error {
	return errors.New("disk full")
}

func TestEveryErrorOfTheStoreHasAReason(t *testing.T) {
	for _, test := range []struct {
		err    error
		reason forge.CloseReason
	}{
		{enroll.ErrTokenUnknown, forge.CloseAuthFailed},
		{enroll.ErrTokenUsed, forge.CloseAuthFailed},
		{enroll.ErrTokenExpired, forge.CloseAuthFailed},
		{enroll.ErrKeyTaken, forge.CloseAuthFailed},
		{enroll.ErrKeyUnknown, forge.CloseAuthFailed},
		{enroll.ErrTooLate, forge.CloseAuthFailed},
		{enroll.ErrOtherCluster, forge.CloseAuthFailed},
		{enroll.ErrOtherKey, forge.CloseAuthFailed},
		{enroll.ErrOtherRunner, forge.CloseRoleViolation},
		{enroll.ErrRunnerDisabled, forge.CloseRunnerDisabled},
		{enroll.ErrRunnerRevoked, forge.CloseRevoked},
		{enroll.ErrSuperseded, forge.CloseFenced},
		{errors.New("else"), forge.CloseInternal},
	} {
		reason, said := enroll.Refuse(errors.Join(errors.New("around it"), test.err))
		w := protocol.NewError(said)
		if reason != test.reason || said.Retry != reason.Retry() || w.Validate() != nil {
			t.Errorf("%v: %v, %+v", test.err, reason, said)
		}
	}
}

// TestAnAgentKeepsNothingOfAnAnswerThatDoesNotFit: the other end of the road is authenticated, and still may be wrong.
func TestAnAgentKeepsNothingOfAnAnswerThatDoesNotFit(t *testing.T) {
	y, other := newYard(t, nil), newYard(t, nil)
	key := trusttest.NewKey(t)
	answer := func(y *yard) *agentv1.EnrollAcceptedV1 {
		w := request(t, key)
		w.Token = protocol.NewSecret([]byte(y.mint().Reveal()))
		accepted, err := y.desk.Enroll(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		return accepted
	}
	good, theirs := answer(y), answer(other)
	stranger := *good
	stranger.Runner = [16]byte{7}
	mixed := *good
	mixed.Certificate.Roots = theirs.Certificate.Roots
	otherKey := *good
	otherKey.Certificate.Chain = [][]byte{y.member().Leaf().Raw}
	for name, w := range map[string]protocol.Message{
		"the id of another runner":     &stranger,
		"roots that did not sign it":   &mixed,
		"another CA than the token's":  theirs,
		"a certificate of another key": &otherKey,
		"a certificate that is none":   &agentv1.EnrollAcceptedV1{Runner: good.Runner, Certificate: agentv1.CertificateV1{Chain: [][]byte{{1}}, Roots: [][]byte{{1}}}},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := askServer(t, func(l *link.Link, m link.Message) error {
				return l.SendWire(context.Background(), forge.MakeID[forge.MessageID](forge.ULID{9}), m.ID, w)
			}, y.mint(), key)
			if !errors.Is(err, enroll.ErrAnswer) && !errors.Is(err, trust.ErrRoots) || id != nil {
				t.Errorf("%v, %v", id, err)
			}
		})
	}
}

func TestAnAgentBelievesASentenceWhoseCloseWasLost(t *testing.T) {
	for retry, want := range map[forge.RetryClass]forge.CloseReason{
		forge.RetryStop: forge.CloseRevoked, forge.RetryOperator: forge.CloseAuthFailed, forge.RetryBackoff: forge.CloseInternal,
	} {
		_, err := askServer(t, func(l *link.Link, m link.Message) error {
			return l.Send(context.Background(), forge.Frame{
				ID: forge.MakeID[forge.MessageID](forge.ULID{9}), Re: m.ID,
				Body: &forge.Error{Code: forge.ErrorRefused, Retry: retry, Text: "no"},
			})
		}, trusttest.NewWorld(t, trusttest.Name, enrolltest.Now).CA.Mint(), trusttest.NewKey(t))
		if reasonOf(err) != want {
			t.Errorf("%v: %v, want %v", retry, err, want)
		}
	}
}
