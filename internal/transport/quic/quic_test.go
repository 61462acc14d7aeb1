package quic_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ca signs everything in these tests.
var ca = transporttest.NewCA()

// listen listens on loopback for a test.
func listen(t testing.TB, addr string, cfg *tls.Config, o quic.Options) *quic.Listener {
	t.Helper()
	l, err := quic.Listen(addr, cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		if err := l.Shutdown(ended); err != nil {
			t.Error(err)
		}
	})
	return l
}

func dialer(t testing.TB, cfg *tls.Config, o quic.Options) *quic.Dialer {
	t.Helper()
	d := quic.NewDialer(cfg, o)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func agent(name string) *tls.Config {
	return ca.Client(ca.Issue(name, transporttest.Good()), protocol.ALPNAgent)
}

// connect makes one connection.
func connect(t testing.TB, l *quic.Listener, d *quic.Dialer) transporttest.Ends {
	t.Helper()
	dialled, err := d.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	accepted, err := l.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dialled.Close(0) })
	return transporttest.Ends{Dialled: dialled, Accepted: accepted}
}

// hear waits until the end that dialled has heard something of the other.
func hear(t *testing.T, ends transporttest.Ends) {
	t.Helper()
	s, err := ends.Accepted.OpenSendStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Write([]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := ends.Dialled.AcceptReceiveStream(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestTheRoadKeepsItsContract(t *testing.T) {
	few := quic.Options{Streams: transporttest.Streams, SendStreams: transporttest.Streams}
	transporttest.Run(t, func(t *testing.T) transporttest.Ends {
		return connect(t, listen(t, "127.0.0.1:0", ca.Server(protocol.ALPNAgent), few), dialer(t, agent("runner"), few))
	})
}

func TestEachEndSeesTheCertificateOfTheOther(t *testing.T) {
	l := listen(t, "127.0.0.1:0", ca.Server(protocol.ALPNEnroll, protocol.ALPNAgent), quic.Options{})
	ends := connect(t, l, dialer(t, agent("runner-7"), quic.Options{}))
	if got := ends.Accepted.Peer(); got.Certificate.Subject.CommonName != "runner-7" || got.ALPN != protocol.ALPNAgent {
		t.Errorf("the daemon sees %v, %v", got.Certificate.Subject, got.ALPN)
	}
	if got := ends.Dialled.Peer(); got.Certificate.Subject.CommonName != "daemon" || got.ALPN != protocol.ALPNAgent {
		t.Errorf("the agent sees %v, %v", got.Certificate.Subject, got.ALPN)
	}
}

// One listener serves names that ask for different certificates.
func TestTheNameOfAConnectionChoosesItsTLSSettings(t *testing.T) {
	strict, open := ca.Server(protocol.ALPNAgent), ca.Server(protocol.ALPNEnroll)
	open.ClientAuth = tls.NoClientCert
	both := ca.Server(protocol.ALPNAgent, protocol.ALPNEnroll)
	both.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, name := range hello.SupportedProtos {
			if name == string(protocol.ALPNEnroll) {
				return open, nil
			}
		}
		return strict, nil
	}
	l := listen(t, "127.0.0.1:0", both, quic.Options{})
	stranger := ca.Client(tls.Certificate{}, protocol.ALPNEnroll)
	stranger.Certificates = nil
	ends := connect(t, l, dialer(t, stranger, quic.Options{}))
	if peer := ends.Accepted.Peer(); peer.Certificate != nil || peer.ALPN != protocol.ALPNEnroll {
		t.Errorf("a stranger enrols as %v on %v", peer.Certificate, peer.ALPN)
	}
	ends = connect(t, l, dialer(t, agent("runner"), quic.Options{}))
	if ends.Accepted.Peer().Certificate == nil {
		t.Error("an agent shows no certificate")
	}
}

// closeReason is why a connection, or the attempt at one, ended.
func closeReason(t *testing.T, err error) forge.CloseReason {
	t.Helper()
	var closed *transport.CloseError
	if !errors.As(err, &closed) {
		t.Fatalf("%v is no *transport.CloseError", err)
	}
	return closed.Reason
}

// fate dials and returns how the connection ends, whether the dial says so or something later.
func fate(t *testing.T, d *quic.Dialer, endpoint string) error {
	t.Helper()
	c, err := d.Dial(t.Context(), endpoint)
	if err != nil {
		return err
	}
	<-c.Context().Done()
	return context.Cause(c.Context())
}

func TestARefusedHandshakeSaysWhy(t *testing.T) {
	refuses := func(verify func(tls.ConnectionState) error) *tls.Config {
		cfg := ca.Server(protocol.ALPNAgent)
		cfg.VerifyConnection = verify
		return cfg
	}
	expired := ca.Server(protocol.ALPNAgent)
	expired.Certificates = []tls.Certificate{ca.Issue("daemon", time.Unix(1e9, 0))}
	for _, test := range []struct {
		name   string
		server *tls.Config
		client *tls.Config
		want   forge.CloseReason
	}{
		{"no certificate", ca.Server(protocol.ALPNAgent), ca.Client(tls.Certificate{}, protocol.ALPNAgent), forge.CloseAuthFailed},
		{"another CA's", ca.Server(protocol.ALPNAgent), func() *tls.Config {
			cfg := agent("runner")
			cfg.Certificates = []tls.Certificate{transporttest.NewCA().Issue("runner", transporttest.Good())}
			return cfg
		}(), forge.CloseAuthFailed},
		{"expired", ca.Server(protocol.ALPNAgent), ca.Client(ca.Issue("runner", time.Unix(1e9, 0)), protocol.ALPNAgent), forge.CloseCertExpired},
		{"revoked", refuses(func(tls.ConnectionState) error { return errors.New("revoked") }), agent("runner"), forge.CloseAuthFailed},
		{"no common name", ca.Server(protocol.ALPNDevice), agent("runner"), forge.CloseVersionMismatch},
		{"another name", ca.Server(protocol.ALPNAgent), func() *tls.Config {
			cfg := agent("runner")
			cfg.ServerName = "other.test"
			return cfg
		}(), forge.CloseAuthFailed},
		// The daemon's certificate is not ours to renew.
		{"the daemon's has expired", expired, agent("runner"), forge.CloseAuthFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := listen(t, "127.0.0.1:0", test.server, quic.Options{})
			err := fate(t, dialer(t, test.client, quic.Options{}), l.Addr().String())
			if got := closeReason(t, err); got != test.want {
				t.Errorf("%v, want %v: %v", got, test.want, err)
			}
		})
	}
}

func TestAnExpiredCertificateOfTheDaemonIsNamed(t *testing.T) {
	server := ca.Server(protocol.ALPNAgent)
	server.Certificates = []tls.Certificate{ca.Issue("daemon", time.Unix(1e9, 0))}
	l := listen(t, "127.0.0.1:0", server, quic.Options{})
	err := fate(t, dialer(t, agent("runner"), quic.Options{}), l.Addr().String())
	var invalid x509.CertificateInvalidError
	if !errors.As(err, &invalid) || invalid.Reason != x509.Expired || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("%v", err)
	}
}

// A resumed session would skip what has changed about a certificate since.
func TestNoSessionIsResumed(t *testing.T) {
	server, client := ca.Server(protocol.ALPNAgent), agent("runner")
	client.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	verified := make(chan bool, 8)
	server.VerifyConnection = func(s tls.ConnectionState) error { verified <- s.DidResume; return nil }
	l, d := listen(t, "127.0.0.1:0", server, quic.Options{}), dialer(t, client, quic.Options{})
	for range 3 {
		ends := connect(t, l, d)
		s, err := ends.Accepted.OpenSendStream(t.Context()) // tickets would come before it
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := ends.Dialled.AcceptReceiveStream(t.Context()); err != nil {
			t.Fatal(err)
		}
		ends.Dialled.Close(0)
		if <-verified {
			t.Error("a session was resumed")
		}
	}
}

// Case B98.
func TestIPv6LoopbackIsAnEndpoint(t *testing.T) {
	l := listen(t, "[::1]:0", ca.Server(protocol.ALPNAgent), quic.Options{})
	connect(t, l, dialer(t, agent("runner"), quic.Options{}))
}

// Case B98.
func TestADeadIPv6AddressDoesNotHideAGoodIPv4One(t *testing.T) {
	dead, err := net.ListenUDP("udp6", &net.UDPAddr{IP: net.IPv6loopback}) // takes everything and says nothing
	if err != nil {
		t.Skip("no IPv6 here")
	}
	defer dead.Close()
	port := dead.LocalAddr().(*net.UDPAddr).AddrPort().Port()
	l := listen(t, netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), port).String(), ca.Server(protocol.ALPNAgent), quic.Options{})
	d := dialer(t, agent("runner"), quic.Options{Resolve: func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "daemon.test" {
			t.Errorf("asked for %q", host)
		}
		return []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1")}, nil
	}})
	_, service, _ := net.SplitHostPort(l.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // before the dead address has run into its own limit
	defer cancel()
	c, err := d.Dial(ctx, net.JoinHostPort("daemon.test", service))
	if err != nil {
		t.Fatal(err)
	}
	c.Close(0)
}

func TestADialThatCannotWorkSaysWhat(t *testing.T) {
	d := dialer(t, agent("runner"), quic.Options{Resolve: func(context.Context, string) ([]netip.Addr, error) {
		return nil, errors.New("no such host")
	}})
	for endpoint, want := range map[string]string{
		"daemon.test":       "missing port",
		"daemon.test:70000": "no number up to 65535",
		"daemon.test:443":   "no such host",
	} {
		_, err := d.Dial(t.Context(), endpoint)
		if closeReason(t, err) != forge.CloseLost || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), endpoint) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

func TestHandshakesOverTheBudgetAreRefusedAsOverload(t *testing.T) {
	// Nothing comes back while the test runs.
	l := listen(t, "127.0.0.1:0", ca.Server(protocol.ALPNAgent), quic.Options{
		Admission: quic.Admission{PerSecond: 1, Burst: 1000, PrefixPerSecond: 1, PrefixBurst: 3},
	})
	d := dialer(t, agent("runner"), quic.Options{})
	refused := 0
	for range 6 {
		c, err := d.Dial(t.Context(), l.Addr().String())
		switch {
		case err == nil:
			c.Close(0)
		case closeReason(t, err) == forge.CloseOverloaded:
			refused++
		default:
			t.Fatal(err)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

// With half of the budget gone clients prove their addresses, and are served.
func TestUnderLoadAClientProvesItsAddressFirst(t *testing.T) {
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	socket := &deaf{UDPConn: udp}
	l := listen(t, "", ca.Server(protocol.ALPNAgent), quic.Options{
		PacketConn: socket, Admission: quic.Admission{PerSecond: 1, Burst: 8, PrefixPerSecond: 100, PrefixBurst: 100},
	})
	d := dialer(t, agent("runner"), quic.Options{})
	connect(t, l, d)
	if socket.retries.Load() != 0 {
		t.Error("a client has to prove its address although there is no load")
	}
	for range 7 {
		connect(t, l, d)
	}
	if socket.retries.Load() == 0 {
		t.Error("no client had to prove its address")
	}
}

// The queue of quic-go has 32 places. Which client finds none is the last whose handshake the daemon has seen the end of, and
// that one had connected already.
func TestOneOfThirtyThreeThatWaitIsToldOfOverload(t *testing.T) {
	l := listen(t, "127.0.0.1:0", ca.Server(protocol.ALPNAgent), quic.Options{})
	d := dialer(t, agent("runner"), quic.Options{})
	ended := make(chan error, 33)
	for range cap(ended) {
		c, err := d.Dial(t.Context(), l.Addr().String())
		if err != nil {
			ended <- err
			continue
		}
		defer c.Close(0)
		context.AfterFunc(c.Context(), func() { ended <- context.Cause(c.Context()) })
	}
	if got := closeReason(t, <-ended); got != forge.CloseOverloaded {
		t.Errorf("it ends with %v", got)
	}
}

func TestAClosedListenerLetsItsConnectionsGoOn(t *testing.T) {
	l, err := quic.Listen("127.0.0.1:0", ca.Server(protocol.ALPNAgent), quic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	d := dialer(t, agent("runner"), quic.Options{})
	ends := connect(t, l, d)
	waiting, err := d.Dial(t.Context(), l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Accept(t.Context()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept after close: %v", err)
	}
	<-waiting.Context().Done()
	// The second where the daemon had not seen the end of its handshake yet.
	if got := closeReason(t, context.Cause(waiting.Context())); got != forge.CloseShutdown && got != forge.CloseOverloaded {
		t.Errorf("a connection that nobody accepted ends with %v", got)
	}
	hear(t, ends)
	ends.Accepted.Close(protocol.CloseCodeOf(forge.CloseGoAway))
	if err := l.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-ends.Dialled.Context().Done()
	if got := closeReason(t, context.Cause(ends.Dialled.Context())); got != forge.CloseGoAway {
		t.Errorf("the agent is told %v", got)
	}
}

// A daemon with the same keys tells the agents of the one before that it is gone, long before they would notice.
func TestARestartedDaemonEndsTheConnectionsOfTheOneBefore(t *testing.T) {
	key, token := &[32]byte{1}, &[32]byte{2}
	options := quic.Options{StatelessReset: key, Token: token, Idle: time.Hour, KeepAlive: time.Second}
	first, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	lost := &deaf{UDPConn: first}
	options.PacketConn = lost
	l, err := quic.Listen("", ca.Server(protocol.ALPNAgent), options)
	if err != nil {
		t.Fatal(err)
	}
	client := quic.Options{Idle: time.Hour, KeepAlive: 100 * time.Millisecond}
	ends := connect(t, l, dialer(t, agent("runner"), client))
	hear(t, ends) // before the end of the handshake is known there, no reset ends the connection
	// It dies as after kill -9: nothing more is sent, and the port is free.
	lost.mute()
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := l.Shutdown(ended); err != nil {
		t.Fatal(err)
	}
	options.PacketConn = nil
	listen(t, first.LocalAddr().String(), ca.Server(protocol.ALPNAgent), options)
	<-ends.Dialled.Context().Done()
	if got := closeReason(t, context.Cause(ends.Dialled.Context())); got != forge.CloseLost {
		t.Errorf("the agent is told %v", got)
	}
}
