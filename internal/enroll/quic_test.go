package enroll_test

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/enroll/enrolltest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

// road is a daemon on a socket of its own: it serves enrolment, and greets agents and answers their renewals.
type road struct {
	*yard
	addr    string
	shown   *trust.Source
	revoked sync.Map // runners
}

func openRoad(t *testing.T) *road {
	t.Helper()
	r := &road{yard: newYard(t, nil)}
	r.shown = trust.NewSource(r.Daemon())
	config := trust.ServerTLS(trust.Server{
		Roots: r.CA.Roots(), Certificates: r.shown, Now: r.clock,
		Standing: func(runner forge.RunnerID, _ trust.Serial) error {
			if _, gone := r.revoked.Load(runner); gone {
				return enroll.ErrRunnerRevoked
			}
			return nil
		},
	})
	listener, err := quic.Listen("127.0.0.1:0", config, quic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.addr = listener.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := listener.Accept(ctx)
			if err != nil {
				return
			}
			if conn.Peer().ALPN == protocol.ALPNEnroll {
				serving.Go(func() { r.counter.Serve(ctx, conn) })
			} else {
				serving.Go(func() { r.agent(ctx, conn) })
			}
		}
	})
	t.Cleanup(func() {
		stop()
		serving.Wait()
		if err := listener.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return r
}

// agent greets one agent, and takes a completed hello for a registration.
func (r *road) agent(ctx context.Context, conn transport.Conn) {
	l, err := link.Answer(ctx, conn, link.Config{})
	if err != nil {
		return
	}
	defer l.Close(forge.CloseShutdown)
	peer := l.Peer().Certificate
	if _, err := r.desk.Use(ctx, peer); err != nil {
		reason, _ := enroll.Refuse(err)
		l.Finish(reason)
		return
	}
	l.SetState(forge.ConnActive)
	for {
		m, err := l.Receive(ctx)
		if err != nil {
			return
		}
		answer, err := r.desk.Renew(ctx, peer, m.Wire.(*agentv1.RenewCertificateV1))
		if err != nil {
			reason, _ := enroll.Refuse(err)
			l.Finish(reason)
			return
		}
		if err := l.SendWire(ctx, forge.MakeID[forge.MessageID](forge.ULID{9}), m.ID, answer); err != nil {
			return
		}
	}
}

func (r *road) dialWith(t *testing.T, config *tls.Config) (transport.Conn, error) {
	t.Helper()
	dialer := quic.NewDialer(config, quic.Options{})
	t.Cleanup(func() {
		if err := dialer.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // only where it would hang
	defer cancel()
	return dialer.Dial(ctx, r.addr)
}

// connect says hello as an agent.
func (r *road) connect(t *testing.T, id *trust.Identity) (*link.Link, error) {
	t.Helper()
	conn, err := r.dialWith(t, trust.AgentTLS(trust.Client{
		Roots: id.Roots(), Certificates: trust.NewSource(id.TLS()), Now: r.clock,
	}))
	if err != nil {
		return nil, err
	}
	return link.Connect(t.Context(), conn, link.Config{Role: protocol.RoleAgent}, forge.AgentSessionID{})
}

func (r *road) recoverOver(t *testing.T, id *trust.Identity) (*trust.Identity, error) {
	t.Helper()
	conn, err := r.dialWith(t, trust.RecoverTLS(trust.Client{Roots: id.Roots(), Now: r.clock}))
	if err != nil {
		t.Fatal(err)
	}
	return enroll.Recover(t.Context(), conn, link.Config{}, id)
}

// TestARunnersLifeOverQUIC: it enrols, connects, renews, connects with the next certificate, lets it expire, recovers, and is
// revoked. It is one runner all the time.
func TestARunnersLifeOverQUIC(t *testing.T) {
	r := openRoad(t)
	token := r.mint()
	conn, err := r.dialWith(t, trust.EnrollTLS(token.CA(), "", r.clock))
	if err != nil {
		t.Fatal(err)
	}
	first, err := enroll.Enroll(t.Context(), conn, link.Config{}, token, trusttest.NewKey(t), "build")
	if err != nil {
		t.Fatal(err)
	}
	old, err := r.connect(t, first)
	if err != nil {
		t.Fatal(err)
	}
	r.pass(2 * time.Hour)
	second := renewOver(t, old, first)
	newer, err := r.connect(t, second)
	if err != nil {
		t.Fatal(err)
	}
	if old.Context().Err() != nil {
		t.Error("the old connection ended before the new one stood")
	}
	old.Close(forge.CloseNormal)
	newer.Close(forge.CloseNormal)

	r.pass(31 * 24 * time.Hour)
	fresh, err := r.CA.IssueDaemon(nil, r.clock())
	if err != nil {
		t.Fatal(err)
	}
	r.shown.Set(fresh)
	_, err = r.connect(t, second)
	if closed, ok := errors.AsType[*transport.CloseError](err); !ok || closed.Reason != forge.CloseCertExpired || !closed.Remote {
		t.Fatalf("with an expired certificate: %v", err)
	}
	third, err := r.recoverOver(t, second)
	if err != nil {
		t.Fatal(err)
	}
	last, err := r.connect(t, third)
	if err != nil {
		t.Fatal(err)
	}
	last.Close(forge.CloseNormal)
	if third.Runner() != first.Runner() {
		t.Errorf("%v became %v", first, third)
	}
}

// TestAnExpiredAndARevokedRunnerLearnWhichOverQUIC is T31 and B47: whatever the alert says, the road of enrolment says it.
func TestAnExpiredAndARevokedRunnerLearnWhichOverQUIC(t *testing.T) {
	r := openRoad(t)
	id := r.member()
	link1, err := r.connect(t, id)
	if err != nil {
		t.Fatal(err)
	}
	link1.Close(forge.CloseNormal)
	r.revoked.Store(id.Runner(), true)
	r.store.SetRunner(id.Runner(), false, true)
	_, err = r.connect(t, id)
	closed, ok := errors.AsType[*transport.CloseError](err)
	if !ok || !enroll.Recoverable(closed.Reason) {
		t.Fatalf("a revoked runner connects: %v", err)
	}
	if _, err := r.recoverOver(t, id); reasonOf(err) != forge.CloseRevoked {
		t.Errorf("asked why: %v", err)
	}
	r.revoked.Clear()
	r.store.SetRunner(id.Runner(), false, false)
	if next, err := r.recoverOver(t, id); err != nil || next.Runner() != id.Runner() {
		t.Errorf("%v, %v", next, err)
	}
	other := trusttest.NewWorld(t, trusttest.Name, enrolltest.Now).Runner(id.Runner())
	if _, err := r.connect(t, other); err == nil {
		t.Error("a certificate of another CA connects")
	}
}

func renewOver(t *testing.T, l *link.Link, id *trust.Identity) *trust.Identity {
	t.Helper()
	w, err := enroll.NewRenewal(id, session)
	if err != nil {
		t.Fatal(err)
	}
	l.SetState(forge.ConnActive)
	request := forge.MakeID[forge.MessageID](forge.ULID{3})
	if err := l.SendWire(t.Context(), request, forge.MessageID{}, w); err != nil {
		t.Fatal(err)
	}
	m, err := l.Receive(t.Context())
	if err != nil || m.Re != request {
		t.Fatalf("%+v, %v", m, err)
	}
	next, err := enroll.Renewed(id, m.Wire.(*agentv1.CertificateIssuedV1))
	if err != nil || next.Leaf().Equal(id.Leaf()) {
		t.Fatalf("%v, %v", next, err)
	}
	return next
}
