package link_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	runner  = forge.RunnerID{ULID: forge.ULID{1}}
	session = forge.AgentSessionID{ULID: forge.ULID{2}}
	attempt = forge.AttemptID{ULID: forge.ULID{3}}
	lease   = forge.LeaseID{ULID: forge.ULID{4}}
)

// ends returns the two ends of a connection in memory.
func ends(alpn protocol.ALPN) (agent, daemon *inmem.Conn) {
	return inmem.Pair(inmem.Limits{}, transport.Peer{ALPN: alpn}, transport.Peer{ALPN: alpn})
}

// witness is an observer that remembers.
type witness struct {
	mu         sync.Mutex
	violations []*protocol.Violation
	received   int
	sent       int
	opened     int
}

func (w *witness) Violation(_ *link.Link, v *protocol.Violation) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.violations = append(w.violations, v)
}

func (w *witness) Received(protocol.Tag, int) { w.count(&w.received) }

func (w *witness) Sent(protocol.Tag, int) { w.count(&w.sent) }

func (w *witness) Opened(protocol.StreamKind) { w.count(&w.opened) }

func (w *witness) count(n *int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*n++
}

func (w *witness) faults() []protocol.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	var faults []protocol.Fault
	for _, v := range w.violations {
		faults = append(faults, v.Fault)
	}
	return faults
}

// linked is an agreed connection from both of its ends.
type linked struct {
	agent, daemon *link.Link
	seen          *witness // by the daemon
}

// agree connects and answers.
func agree(t testing.TB, agent, daemon transport.Conn, mine, theirs link.Config) linked {
	t.Helper()
	var seen *witness
	if theirs.Observer == nil {
		seen = new(witness)
		theirs.Observer = seen
	}
	mine.Role = protocol.RoleAgent
	type result struct {
		l   *link.Link
		err error
	}
	answered := make(chan result, 1)
	go func() {
		l, err := link.Answer(t.Context(), daemon, theirs)
		answered <- result{l, err}
	}()
	a, err := link.Connect(t.Context(), agent, mine, session)
	d := <-answered
	if err != nil || d.err != nil {
		t.Fatalf("%v; %v", err, d.err)
	}
	return linked{a, d.l, seen}
}

func linkUp(t testing.TB) linked {
	a, d := ends(protocol.ALPNAgent)
	return agree(t, a, d, link.Config{}, link.Config{})
}

func (l linked) close() {
	l.agent.Close(forge.CloseNormal)
	l.daemon.Close(forge.CloseNormal)
}

// active moves both ends on as a registration and a resync do.
func (l linked) active(t testing.TB) {
	t.Helper()
	for _, m := range []forge.Message{accepted, &forge.ResyncReply{Nonce: 1}} {
		if err := l.daemon.Send(t.Context(), frame(m)); err != nil {
			t.Fatal(err)
		}
		if _, err := l.agent.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

var accepted = &forge.RegistrationAccepted{
	ServerTime: 1, Transport: forge.TransportSessionID{ULID: forge.ULID{9}}, Policy: policy,
}

var policy = forge.DefaultLeasePolicy()

func frame(m forge.Message) forge.Frame {
	return forge.Frame{ID: ident.New[forge.MessageID](), Body: m}
}

func closeOf(t testing.TB, err error) *transport.CloseError {
	t.Helper()
	var closed *transport.CloseError
	if !errors.As(err, &closed) {
		t.Fatalf("%v is no *transport.CloseError", err)
	}
	return closed
}

func TestBothEndsAgreeOnVersionAndFeatures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, d := ends(protocol.ALPNAgent)
		own := protocol.Terms{Versions: protocol.Supported(), Features: protocol.FeatureSet{protocol.FeatureLogResume, 40_000}}
		l := agree(t, a, d, link.Config{Terms: own, Software: "agent 1"}, link.Config{Software: "daemon 1"})
		defer l.close()
		for _, end := range []*link.Link{l.agent, l.daemon} {
			if end.Version() != protocol.Current || len(end.Features()) != 1 || !end.Features().Has(protocol.FeatureLogResume) {
				t.Errorf("agreed on %v with %v", end.Version(), end.Features())
			}
			if end.State() != forge.ConnRegistering {
				t.Errorf("it is %v", end.State())
			}
		}
		if h := l.daemon.Hello(); h.Software != "agent 1" || h.SessionID() != session || h.Role != protocol.RoleAgent {
			t.Errorf("the daemon heard %+v", h)
		}
	})
}

// Case B43.
func TestNoCommonVersionIsSaidToBothEndsWithBothRanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, d := ends(protocol.ALPNAgent)
		server := protocol.Terms{Versions: protocol.Ranges{{Major: 3}, {Major: 4}}}
		client := protocol.Terms{Versions: protocol.Ranges{{Major: 1}, {Major: 2}}}
		answered := make(chan error, 1)
		go func() {
			_, err := link.Answer(t.Context(), d, link.Config{Terms: server})
			answered <- err
		}()
		_, mine := link.Connect(t.Context(), a, link.Config{Terms: client, Role: protocol.RoleAgent}, session)
		for _, err := range []error{mine, <-answered} {
			var m *protocol.Mismatch
			if closeOf(t, err).Reason != forge.CloseVersionMismatch {
				t.Errorf("it ends with %v", err)
			}
			if errors.As(err, &m); m == nil || m.Error() != "server supports 3-4, agent supports 1-2" {
				t.Errorf("the operator reads %v", err)
			}
		}
	})
}

func TestMessagesGoBothWaysAsTheyWere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		l.active(t)
		beat := frame(&forge.Heartbeat{Runner: runner, Session: session, Nonce: 7, State: forge.AgentOnline})
		if err := l.agent.Send(t.Context(), beat); err != nil {
			t.Fatal(err)
		}
		m, err := l.daemon.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := m.Domain.(*forge.Heartbeat); !ok || got.Nonce != 7 || m.ID != beat.ID || m.Wire != nil {
			t.Errorf("the daemon got %+v", m)
		}
		probe := ident.New[forge.MessageID]()
		if err := l.daemon.SendWire(t.Context(), probe, beat.ID, &agentv1.ProbeRequestV1{}); err != nil {
			t.Fatal(err)
		}
		m, err = l.agent.Receive(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Wire.(*agentv1.ProbeRequestV1); !ok || m.ID != probe || m.Re != beat.ID || m.Domain != nil {
			t.Errorf("the agent got %+v", m)
		}
		if l.seen.received != 2 || l.seen.sent != 4 { // with the hello
			t.Errorf("the observer counted %d and %d frames", l.seen.received, l.seen.sent)
		}
	})
}

// Frames that follow each other at once meet the state that the one before has led to.
func TestTheStateMovesWithTheMessagesThatMoveIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		for _, m := range []forge.Message{accepted, &forge.ResyncReply{Nonce: 1}, &forge.Drain{}} {
			if err := sendBeside(t, l.daemon, m); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		for range 3 {
			if _, err := l.agent.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if l.agent.State() != forge.ConnActive || l.daemon.State() != forge.ConnActive {
			t.Errorf("the agent is %v, the daemon %v", l.agent.State(), l.daemon.State())
		}
		l.daemon.SetState(forge.ConnRegistering)
		if l.daemon.State() != forge.ConnActive {
			t.Error("a state came back")
		}
	})
}

func sendBeside(t *testing.T, l *link.Link, m forge.Message) error {
	t.Helper()
	return l.Send(t.Context(), frame(m))
}

func TestAMessageInAnotherNameIsASecurityViolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		l.active(t)
		l.daemon.Bind(runner, session)
		good := &forge.Heartbeat{Runner: runner, Session: session, Nonce: 1, State: forge.AgentOnline}
		if err := sendBeside(t, l.agent, good); err != nil {
			t.Fatal(err)
		}
		if _, err := l.daemon.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		bad := *good
		bad.Runner = forge.RunnerID{ULID: forge.ULID{66}}
		if err := sendBeside(t, l.agent, &bad); err != nil {
			t.Fatal(err)
		}
		_, err := l.daemon.Receive(t.Context())
		if closeOf(t, err).Reason != forge.CloseRoleViolation {
			t.Errorf("it ends with %v", err)
		}
		if v := l.seen.violations; len(v) != 1 || v[0].Severity() != protocol.SeveritySecurity {
			t.Errorf("the observer saw %v", v)
		}
	})
}

func TestSendersDoNotMixTheirFrames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		l.active(t)
		const senders, each = 8, 50
		var wait sync.WaitGroup
		for range senders {
			wait.Go(func() {
				for range each {
					if err := sendBeside(t, l.agent, &forge.CancelAck{Attempt: attempt, Lease: lease}); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		for range senders * each {
			if _, err := l.daemon.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wait.Wait()
	})
}

// Case T04, B34: a peer that takes nothing holds nobody up for long.
func TestAPeerThatReadsNothingIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		l.active(t)
		begun := time.Now()
		var err error
		for err == nil { // until every window is full
			err = sendBeside(t, l.daemon, &forge.GoAway{Endpoints: []string{"daemon.test:443"}})
		}
		if closeOf(t, err).Reason != forge.CloseRate || time.Since(begun) != 10*time.Second {
			t.Errorf("after %v: %v", time.Since(begun), err)
		}
		<-l.agent.Context().Done()
		if f := l.seen.faults(); len(f) != 1 || f[0] != protocol.FaultRate {
			t.Errorf("the observer saw %v", f)
		}
	})
}

func TestASendThatDoesNotBeginLeavesTheLinkWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		why := errors.New("because")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		if err := l.agent.Send(ctx, frame(&forge.Heartbeat{})); err == nil || errors.Is(err, why) {
			t.Errorf("a heartbeat of nobody: %v", err)
		}
		if _, err := l.agent.Receive(ctx); !errors.Is(err, why) {
			t.Errorf("receive: %v", err)
		}
		if _, err := l.daemon.Accept(ctx); !errors.Is(err, why) {
			t.Errorf("accept: %v", err)
		}
		l.active(t)
	})
}
