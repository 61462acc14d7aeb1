package agents_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/agents"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
)

// Row 09-I12: a newer connection of a session silences the older one with 0x400.
func TestTheOlderConnectionOfASessionIsFenced(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		w.begin()
		p := w.process(w.runner(1))
		p.connect()
		older := *p
		p.connect()
		if reason, _ := older.closed(); reason != forge.CloseFenced {
			t.Errorf("closed for %v", reason)
		}
		if p.transport.IsZero() || p.transport == older.transport || p.transport.ULID == p.session.ULID {
			t.Errorf("the connections of one session are called %v and %v", older.transport, p.transport)
		}
		w.control.wait(t, "the newer one speaks", func() bool { return w.control.connected[p.runner] == p.session })
		p.nonce++
		p.say(&forge.Heartbeat{Runner: p.runner, Session: p.session, Nonce: p.nonce, State: forge.AgentOnline})
		hear[*forge.HeartbeatAck](p)
	})
}

// Row 07-I05: an older process stops for good, whichever of the two speaks last.
func TestASupersededProcessIsToldToStop(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		w.begin()
		old := w.process(w.runner(1))
		old.connect()
		young := old.next()
		young.connect()
		if reason, _ := old.closed(); reason != forge.CloseSessionSuperseded {
			t.Errorf("closed for %v", reason)
		}
		old.dial()
		old.register()
		reason, rejected := old.closed()
		if reason != forge.CloseSessionSuperseded || rejected != forge.CloseSessionSuperseded {
			t.Errorf("rejected for %v, closed for %v", rejected, reason)
		}
		// A start is nothing to warn of; it is in the audit log all the same.
		if log := w.journal.String(); !strings.Contains(log, "level=INFO msg=audit kind=session_replaced") {
			t.Errorf("told: %s", log)
		}
	})
}

// Case T14: a connection that just ends is forgotten, and what it held of the server is free.
func TestADeadConnectionIsForgotten(t *testing.T) {
	w := newWorld(t)
	w.begin()
	runner := w.runner(1)
	for range 50 {
		p := w.process(runner)
		p.dial()
		p.conn.(*inmem.Conn).Break()
		p.link.Close(forge.CloseNormal)
	}
	p := w.process(runner)
	p.connect()
	p.conn.(*inmem.Conn).Break()
	w.control.wait(t, "it is gone", func() bool { _, there := w.control.connected[runner]; return !there })
	late := time.After(patience)
	for len(w.server.Sessions()) > 0 {
		select {
		case <-time.After(time.Millisecond):
		case <-late:
			t.Fatalf("%d are left", len(w.server.Sessions()))
		}
	}
}

// Case B34, row 09-A06: a peer that says hello and no more is closed.
func TestAPeerThatNeverRegistersIsClosed(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p := w.process(w.runner(1))
	p.dial()
	w.server.Advance(forge.Instant(core.RegisterWithin))
	reason, rejected := p.closed()
	if reason != forge.CloseRegisterTimeout || rejected != forge.CloseRegisterTimeout {
		t.Errorf("rejected for %v, closed for %v", rejected, reason)
	}
}

// Row I22: a runner that is disabled or revoked has no connection soon after.
func TestADisabledRunnerIsStoppedAndClosed(t *testing.T) {
	for _, test := range []struct {
		set  authority.SetRunner
		want forge.CloseReason
	}{
		{authority.SetRunner{Disabled: true}, forge.CloseRunnerDisabled},
		{authority.SetRunner{Revoked: true}, forge.CloseRevoked},
	} {
		w := newWorld(t)
		w.begin()
		runner := w.runner(1)
		p := w.process(runner)
		p.connect()
		w.place(w.job(), runner)
		c := p.take()
		test.set.Runner = runner
		_, err := w.store.Do(w.ctx, store.ClassState, &test.set)
		w.must(err)
		if cancel := hear[*forge.Cancel](p); cancel.Lease != c.Lease || cancel.Reason != forge.CancelDisabled {
			t.Errorf("%+v", cancel)
		}
		w.server.Advance(forge.Instant(core.DisabledWithin))
		if reason, _ := p.closed(); reason != test.want {
			t.Errorf("closed for %v, not %v", reason, test.want)
		}
		p.dial()
		p.register()
		if _, rejected := p.closed(); rejected != test.want {
			t.Errorf("rejected for %v, not %v", rejected, test.want)
		}
	}
}

func TestACertificateThatWasSupersededRegistersNobody(t *testing.T) {
	w := newWorld(t)
	w.desk.use = enroll.ErrRunnerRevoked
	w.begin()
	p := w.process(w.runner(1))
	p.dial()
	p.register()
	if reason, rejected := p.closed(); reason != forge.CloseRevoked || rejected != forge.CloseRevoked {
		t.Errorf("rejected for %v, closed for %v", rejected, reason)
	}
}

// Rows 09-I10 and 09-A29, case B31: whoever speaks for another runner is closed, and somebody hears of it.
func TestAMessageInAnothersNameIsAuditedAndClosed(t *testing.T) {
	w := newWorld(t)
	w.begin()
	runner := w.runner(1)
	p := w.process(runner)
	p.connect()
	p.say(&forge.Heartbeat{Runner: w.runner(1), Session: p.session, Nonce: 9, State: forge.AgentOnline})
	if reason, _ := p.closed(); reason != forge.CloseRoleViolation {
		t.Errorf("closed for %v", reason)
	}
	w.audited("role_violation", runner)
}

// A crowd of connections with one certificate neither drives a runner out nor keeps it out.
func TestACrowdWithOneCertificateKeepsNobodyOut(t *testing.T) {
	w := newWorld(t)
	w.begin()
	runner := w.runner(1)
	p := w.process(runner)
	p.connect()
	first := w.process(runner)
	first.dial()
	for range agents.MaxConnsPerRunner {
		w.process(runner).dial()
	}
	if reason, _ := first.closed(); reason != forge.CloseOverloaded {
		t.Errorf("closed for %v", reason)
	}
	if n := len(w.server.Sessions()); n > agents.MaxConnsPerRunner+1 { // one may be on its way out
		t.Errorf("%d connections stand", n)
	}
	p.nonce++
	p.say(&forge.Heartbeat{Runner: p.runner, Session: p.session, Nonce: p.nonce, State: forge.AgentOnline})
	hear[*forge.HeartbeatAck](p)
	p.connect()
	w.process(w.runner(1)).connect() // others are not touched
}

// Row 07-G22 for the daemon: agents are told to go, and nothing that was asked stays without an answer.
func TestAServerThatStopsSaysSoAndAnswersWhatWasAsked(t *testing.T) {
	roads(t, func(t *testing.T, w *world) {
		w.begin()
		p := w.process(w.runner(1))
		p.connect()
		ended := make(chan forge.CloseReason, 1)
		go func() { reason, _ := p.closed(); ended <- reason }()
		w.stop()
		if reason := <-ended; reason != forge.CloseShutdown {
			t.Errorf("closed for %v", reason)
		}
		if p.goAway == nil || p.goAway.Spread == 0 {
			t.Errorf("the farewell is %+v", p.goAway)
		}
	})
}

func TestAProbeIsAnsweredAndItsReportKept(t *testing.T) {
	w := newWorld(t)
	w.begin()
	runner := w.runner(1)
	p := w.process(runner)
	if _, err := w.server.Probe(w.ctx, runner); !errors.Is(err, agents.ErrNotConnected) {
		t.Error(err)
	}
	p.connect()
	w.control.wait(t, "the runner is in step", func() bool { return w.control.connected[runner] == p.session })
	health := forge.HealthOf([]forge.HealthCheck{{Kind: forge.CheckDiskSpace, Status: forge.Degraded, Detail: "nearly full"}})
	answered := make(chan error, 1)
	go func() {
		got, err := w.server.Probe(w.ctx, runner)
		if err == nil && got.Status != health.Status {
			err = errors.New("another report")
		}
		answered <- err
	}()
	for {
		m := p.heard()
		if _, ok := m.Wire.(*agentv1.ProbeRequestV1); ok {
			w.must(p.link.SendWire(w.ctx, ident.New[forge.MessageID](), m.ID, agentv1.NewHealthReport(runner, p.session, health)))
			break
		}
	}
	w.must(<-answered)
	w.control.wait(t, "the report is known", func() bool { return w.control.health[runner].Status == forge.Degraded })
	short, cancel := context.WithCancel(w.ctx)
	cancel()
	if _, err := w.server.Probe(short, runner); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestACertificateIsRenewedOrRefused(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p := w.process(w.runner(1))
	issued := &agentv1.CertificateIssuedV1{Certificate: agentv1.CertificateV1{Chain: [][]byte{{1}}, Roots: [][]byte{{2}}, NotAfter: 3}}
	w.desk.renew = func(req *agentv1.RenewCertificateV1) (*agentv1.CertificateIssuedV1, error) {
		if string(req.Request) == "good" {
			return issued, nil
		}
		return nil, enroll.ErrRunnerDisabled
	}
	p.connect()
	ask := func(request string) link.Message {
		id := ident.New[forge.MessageID]()
		w.must(p.link.SendWire(w.ctx, id, forge.MessageID{}, &agentv1.RenewCertificateV1{
			Peer: protocol.NewPeer(p.runner, p.session), Request: []byte(request),
		}))
		for {
			if m := p.heard(); m.Re == id {
				return m
			}
		}
	}
	if m, ok := ask("good").Wire.(*agentv1.CertificateIssuedV1); !ok || m.Certificate.NotAfter != 3 {
		t.Errorf("%+v", m)
	}
	if m, ok := ask("bad").Domain.(*forge.Error); !ok || m.Code != forge.ErrorRefused {
		t.Errorf("%+v", m)
	}
}

// Row 07-A03: an agent whose capabilities are not those that are known is asked for them, once.
func TestCapabilitiesThatAreNotKnownAreAskedFor(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p := w.process(w.runner(1))
	p.connect()
	beat := func(d digest.Digest) (refresh int) {
		p.nonce++
		p.say(&forge.Heartbeat{Runner: p.runner, Session: p.session, Nonce: p.nonce, State: forge.AgentOnline, CapabilityDigest: d})
		for {
			switch m := p.heard().Domain.(type) {
			case *forge.RefreshCapabilities:
				refresh++
			case *forge.HeartbeatAck:
				if m.Nonce == p.nonce {
					return refresh
				}
			}
		}
	}
	other := machine()
	other.Labels = []string{"site=b"}
	if n := beat(machine().Digest()); n != 0 {
		t.Errorf("asked %d times for what is known", n)
	}
	if n := beat(other.Digest()) + beat(other.Digest()); n != 1 {
		t.Errorf("asked %d times", n)
	}
	p.say(&forge.CapabilityUpdate{Runner: p.runner, Session: p.session, Capabilities: other, CapabilityDigest: other.Digest()})
	if n := beat(other.Digest()); n != 0 {
		t.Errorf("asked %d times for what has come", n)
	}
}

// Row 09-G24.
func TestMetricsSayWhatHappens(t *testing.T) {
	w := newWorld(t)
	w.begin()
	p := w.process(w.runner(1))
	p.connect()
	older := *p
	p.connect()
	older.closed()
	p.say(&forge.Heartbeat{Runner: w.runner(1), Session: p.session, Nonce: 9, State: forge.AgentOnline})
	p.closed()
	w.audited("role_violation", p.runner)
	page := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(page, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for _, want := range []string{
		"forgeyard_quic_connections_total 2",
		"forgeyard_transport_session_fenced_total 1",
		`forgeyard_transport_protocol_errors_total{fault="not allowed for this peer",severity="security"} 1`,
		`forgeyard_transport_audit_events_total{kind="role_violation"} 1`,
		`forgeyard_transport_messages_total{direction="in",family="`,
	} {
		if !strings.Contains(page.Body.String(), want) {
			t.Errorf("no %s in\n%s", want, page.Body.String())
		}
	}
}
