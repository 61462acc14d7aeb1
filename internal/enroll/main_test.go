package enroll_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/enroll/enrolltest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is a daemon's side of enrolment, with a clock in hand.
type yard struct {
	*trusttest.World
	t       testing.TB
	store   *enrolltest.Memory
	desk    *enroll.Desk
	counter *enroll.Counter
	log     safeBuffer

	mu     sync.Mutex
	now    time.Time
	events []enroll.Event
}

func newYard(t testing.TB, change func(*enroll.DeskConfig, *enroll.CounterConfig)) *yard {
	t.Helper()
	y := &yard{World: trusttest.NewWorld(t, trusttest.Name, enrolltest.Now), t: t, store: enrolltest.NewMemory(), now: enrolltest.Now}
	desk := enroll.DeskConfig{CA: y.CA, Store: y.store, Now: y.clock, Audit: y.audit}
	log := slog.New(slog.NewJSONHandler(&y.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	counter := enroll.CounterConfig{Log: log, Link: link.Config{Log: log}}
	if change != nil {
		change(&desk, &counter)
	}
	y.desk = enroll.NewDesk(desk)
	y.counter = enroll.NewCounter(y.desk, counter)
	return y
}

func (y *yard) clock() time.Time {
	y.mu.Lock()
	defer y.mu.Unlock()
	return y.now
}

func (y *yard) pass(d time.Duration) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.now = y.now.Add(d)
}

func (y *yard) audit(_ context.Context, e enroll.Event) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.events = append(y.events, e)
}

// heard returns the events since the last call.
func (y *yard) heard() []enroll.Event {
	y.mu.Lock()
	defer y.mu.Unlock()
	events := y.events
	y.events = nil
	return events
}

func (y *yard) kinds() []enroll.EventKind {
	var kinds []enroll.EventKind
	for _, e := range y.heard() {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

func (y *yard) expect(kinds ...enroll.EventKind) {
	y.t.Helper()
	if got := y.kinds(); !slices.Equal(got, kinds) {
		y.t.Errorf("events %v, want %v", got, kinds)
	}
}

// mint makes a token that is known.
func (y *yard) mint() trust.Token {
	token := y.CA.Mint()
	y.store.AddToken(token.Hash(), y.clock().Add(trust.TokenLifetime))
	return token
}

// dial opens a connection that the counter serves, from an address.
func (y *yard) dial(addr string) (transport.Conn, func()) {
	y.t.Helper()
	at, err := net.ResolveUDPAddr("udp", addr)
	if err != nil {
		y.t.Fatal(err)
	}
	here, there := inmem.Pair(inmem.Limits{}, transport.Peer{ALPN: protocol.ALPNEnroll}, transport.Peer{ALPN: protocol.ALPNEnroll, Addr: at})
	var served sync.WaitGroup
	served.Go(func() { y.counter.Serve(context.Background(), there) })
	return here, served.Wait
}

const home = "192.0.2.7:4000"

// enrol asks over the road.
func (y *yard) enrol(token trust.Token, key trust.Key) (*trust.Identity, error) {
	conn, served := y.dial(home)
	defer served()
	return enroll.Enroll(context.Background(), conn, link.Config{}, token, key, "build")
}

func (y *yard) recover(id *trust.Identity) (*trust.Identity, error) {
	conn, served := y.dial(home)
	defer served()
	return enroll.Recover(context.Background(), conn, link.Config{}, id)
}

// renew asks as the agents' edge does, on a connection that was made with the identity's certificate.
func (y *yard) renew(id *trust.Identity) (*trust.Identity, error) {
	w, err := enroll.NewRenewal(id, session)
	if err != nil {
		return nil, err
	}
	answer, err := y.desk.Renew(context.Background(), id.Leaf(), w)
	if err != nil {
		return nil, err
	}
	return enroll.Renewed(id, answer)
}

var session = forge.MakeID[forge.AgentSessionID](forge.ULID{1})

// member is a runner that is enrolled.
func (y *yard) member() *trust.Identity {
	y.t.Helper()
	id, err := y.enrol(y.mint(), trusttest.NewKey(y.t))
	if err != nil {
		y.t.Fatal(err)
	}
	y.heard()
	return id
}

// use registers with a certificate, as far as this package goes.
func (y *yard) use(cert *x509.Certificate) error {
	_, err := y.desk.Use(context.Background(), cert)
	return err
}

func reasonOf(err error) forge.CloseReason {
	if refused, ok := errors.AsType[*enroll.Refused](err); ok {
		return refused.Reason
	}
	return 0
}

// request is an Enroll without a token.
func request(t testing.TB, key trust.Key) *agentv1.EnrollV1 {
	t.Helper()
	der, err := trust.NewRequest(key)
	if err != nil {
		t.Fatal(err)
	}
	return &agentv1.EnrollV1{Request: der}
}

// safeBuffer takes a log from several goroutines.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
