package runner

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// issue makes the next certificate of a yard's runner from a request.
func (y *yard) issue(runner forge.RunnerID, request []byte) agentv1.CertificateV1 {
	y.t.Helper()
	parsed, err := trust.ParseRequest(request)
	y.must(err)
	cert, err := y.ca.IssueRunner(parsed, runner, time.Now(), 0)
	y.must(err)
	return agentv1.CertificateV1{Chain: [][]byte{cert.Raw}, Roots: y.ca.Roots().DER()}
}

// TestANewCertificateIsOnTheDiskAndInUseBeforeTheOldConnectionEnds: the next certificate comes over the control stream, and a
// job that runs meanwhile does not notice.
func TestANewCertificateIsOnTheDiskAndInUseBeforeTheOldConnectionEnds(t *testing.T) {
	release := make(chan struct{})
	y := newYard(t, &runnertest.Machine{Run: func(context.Context, *runnertest.Workload) forge.Result {
		<-release
		return forge.Result{Class: forge.Succeeded}
	}})
	y.daemon.Wire = func(c *runnertest.Conn, m link.Message) {
		w, is := m.Wire.(*agentv1.RenewCertificateV1)
		if !is {
			return
		}
		issued := &agentv1.CertificateIssuedV1{Certificate: y.issue(w.Peer.RunnerID(), w.Request)}
		if err := c.SendWire(c.Context(), ident.New[forge.MessageID](), m.ID, issued); err != nil {
			t.Error(err)
		}
	}
	y.enrolled = time.Now().Add(-trust.RunnerLifetime * 2 / 3)
	y.enrol()
	a := y.start(nil)
	first := y.daemon.Synced()
	job := y.daemon.Offer(first, spec())
	runnertest.Await(y.daemon, "the job runs", func(m *forge.PhaseChange) bool { return m.Phase == forge.AttemptRunning })
	old := a.who()
	if !a.renew(0) {
		t.Fatal("a certificate past half of its time is not renewed")
	}
	second := y.daemon.Synced(first)
	if peer := y.daemon.Peer(second); peer.TransportSeq != 2 || peer.Session != job.Session {
		t.Errorf("the second connection registered as %+v", peer)
	}
	now := a.who()
	if now.Runner() != old.Runner() || !now.Leaf().NotAfter.After(old.Leaf().NotAfter) || a.source.Certificate().Leaf != now.TLS().Leaf {
		t.Errorf("the new certificate is %v until %v", now.Runner(), now.Leaf().NotAfter)
	}
	stored, err := a.trust.Load()
	y.must(err)
	if !stored.Leaf().Equal(now.Leaf()) {
		t.Error("the disk has another certificate")
	}
	if a.renew(0) {
		t.Error("a new certificate is renewed at once")
	}
	close(release)
	runnertest.Await(y.daemon, "the job is completed", of(job))
}

// counter answers on the enrolment's road.
func (y *yard) counter(answer func(l *link.Link, m link.Message)) {
	y.t.Helper()
	listener, err := y.network.Listen(endpoint+"/enrol", inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNEnroll}})
	y.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	var tasks sync.WaitGroup
	tasks.Go(func() {
		for {
			road, err := listener.Accept(ctx)
			if err != nil {
				return
			}
			l, err := link.Answer(ctx, road, link.Config{Terms: protocol.OwnTerms(), Software: "test"})
			if err != nil {
				continue
			}
			if m, err := l.Receive(ctx); err == nil {
				answer(l, m)
			}
			<-l.Context().Done()
			l.Close(forge.CloseNormal)
		}
	})
	y.t.Cleanup(func() {
		cancel()
		_ = listener.Close()
		tasks.Wait()
	})
}

// picky is a road on which a certificate that was issued before a time is refused, as a daemon's TLS would.
type picky struct {
	transport.Dialer
	source *trust.Source
	since  time.Time
	reason forge.CloseReason
	dialed *atomic.Int32
}

func (p picky) Dial(ctx context.Context, endpoint string) (transport.Conn, error) {
	p.dialed.Add(1)
	if p.source.Certificate().Leaf.NotBefore.Before(p.since) {
		return nil, &transport.CloseError{Reason: p.reason, Remote: true}
	}
	return p.Dialer.Dial(ctx, endpoint)
}

// elsewhere is a road whose endpoints have another name.
type elsewhere struct{ transport.Dialer }

func (e elsewhere) Dial(ctx context.Context, endpoint string) (transport.Conn, error) {
	return e.Dialer.Dial(ctx, endpoint+"/enrol")
}

// startWithOldCertificate starts an agent whose certificate the daemon's TLS refuses for a reason, and counts its tries.
func (y *yard) startWithOldCertificate(reason forge.CloseReason) (*running, *atomic.Int32) {
	dialed := new(atomic.Int32)
	y.enrolled = time.Now().Add(-trust.RunnerLifetime - time.Hour)
	y.enrol()
	return y.start(func(c *Config) {
		roads := c.Roads
		c.Roads = func(roots trust.Roots, source *trust.Source) (transport.Dialer, transport.Dialer) {
			agents, recovery := roads(roots, source)
			return picky{agents, source, time.Now().Add(-time.Hour), reason, dialed}, elsewhere{recovery}
		}
	}), dialed
}

// refusals are what TLS can say of a certificate that is not taken any more.
var refusals = []forge.CloseReason{forge.CloseCertExpired, forge.CloseAuthFailed}

func TestACertificateThatIsNotTakenIsReplacedByProofOfItsKey(t *testing.T) {
	for _, reason := range refusals {
		t.Run(reason.String(), func(t *testing.T) {
			y := newYard(t, &runnertest.Machine{})
			y.counter(func(l *link.Link, m link.Message) {
				w, is := m.Wire.(*agentv1.EnrollV1)
				if !is || w.Token != nil {
					t.Errorf("on the road of enrolment came %T", m.Wire)
					return
				}
				accepted := &agentv1.EnrollAcceptedV1{Runner: y.runner.ULID, Certificate: y.issue(y.runner, w.Request)}
				if err := l.SendWire(l.Context(), ident.New[forge.MessageID](), m.ID, accepted); err != nil {
					t.Error(err)
				}
			})
			a, _ := y.startWithOldCertificate(reason)
			if peer := y.daemon.Peer(y.daemon.Synced()); peer.Runner != a.Runner() || peer.TransportSeq != 1 {
				t.Errorf("registered as %+v", peer)
			}
		})
	}
}

// refusal answers on the enrolment's road with a no.
func refusal(t *testing.T, reason forge.CloseReason) func(*link.Link, link.Message) {
	return func(l *link.Link, m link.Message) {
		no := &forge.Error{Code: forge.ErrorRefused, Retry: reason.Retry(), Text: "no"}
		if err := l.Send(l.Context(), forge.Frame{ID: ident.New[forge.MessageID](), Re: m.ID, Body: no}); err != nil {
			t.Error(err)
		}
		l.Finish(reason)
	}
}

// TestARevokedRunnerThatIsStartedAgainEndsForGood: case B47, T31. TLS says no more than that the certificate is bad.
func TestARevokedRunnerThatIsStartedAgainEndsForGood(t *testing.T) {
	for _, reason := range refusals {
		t.Run(reason.String(), func(t *testing.T) {
			y := newYard(t, &runnertest.Machine{})
			y.counter(refusal(t, forge.CloseRevoked))
			a, _ := y.startWithOldCertificate(reason)
			a.end(core.ExitRevoked)
		})
	}
}

// TestARunnerThatTheDaemonDoesNotKnowAsksOnce: case T31. Nobody has revoked it, so it goes on trying, and 1,000 tries cost the
// daemon 1,000 handshakes and one proof of a key.
func TestARunnerThatTheDaemonDoesNotKnowAsksOnce(t *testing.T) {
	y := newYard(t, &runnertest.Machine{})
	var asked atomic.Int32
	said := make(chan struct{})
	y.counter(func(l *link.Link, m link.Message) {
		if asked.Add(1) == 1 {
			close(said)
		}
		refusal(t, forge.CloseAuthFailed)(l, m)
	})
	a, dialed := y.startWithOldCertificate(forge.CloseAuthFailed)
	<-said
	for a.recoverable(forge.CloseAuthFailed) {
		runtime.Gosched()
	}
	for range 1000 {
		c := &conn{a: a.Agent, endpoint: endpoint}
		if _, err := c.open(t.Context(), forge.AgentSessionID{}); reasonOf(err) != forge.CloseAuthFailed {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("it proved its key %d times in %d tries", n, dialed.Load())
	}
	if !a.recoverable(forge.CloseCertExpired) {
		t.Error("nor would it for a certificate that has expired")
	}
}
