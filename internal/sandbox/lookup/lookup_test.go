package lookup_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/dns/dnsmessage"

	"github.com/forgeyard/forgeyard/internal/sandbox/lookup"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func server(t *testing.T) *lookup.Server {
	t.Helper()
	s, err := lookup.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func dial(t *testing.T, network string, s *lookup.Server) net.Conn {
	t.Helper()
	c, err := net.Dial(network, s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}

func question(t *testing.T, id uint16, name string) []byte {
	t.Helper()
	m := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: id, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: dnsmessage.MustNewName(name), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
	}
	packed, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

func refused(t *testing.T, id uint16, packet []byte) {
	t.Helper()
	var m dnsmessage.Message
	if err := m.Unpack(packet); err != nil {
		t.Fatal(err)
	}
	if m.ID != id || !m.Response || m.RCode != dnsmessage.RCodeRefused || len(m.Questions) != 1 || len(m.Answers) != 0 {
		t.Errorf("answered %+v", m)
	}
}

func ask(t *testing.T, c net.Conn, id uint16, name string) {
	t.Helper()
	if _, err := c.Write(question(t, id, name)); err != nil {
		t.Fatal(err)
	}
	packet := make([]byte, 512)
	n, err := c.Read(packet)
	if err != nil {
		t.Fatal(err)
	}
	refused(t, id, packet[:n])
}

func TestAResolverIsRefusedAndTheNameRemembered(t *testing.T) {
	s := server(t)
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, s.Addr())
	}}
	_, err := resolver.LookupHost(t.Context(), "Proxy.golang.org.")
	var dns *net.DNSError
	if !errors.As(err, &dns) || dns.IsTimeout {
		t.Errorf("the resolver got %v", err)
	}
	if got := s.Names(); !slices.Equal(got, []string{"proxy.golang.org"}) {
		t.Errorf("remembered %q", got)
	}
	if got := s.Names(); len(got) != 0 {
		t.Errorf("remembered %q a second time", got)
	}
}

func TestQuestionsOverTCPAreRefusedOneAfterAnother(t *testing.T) {
	s := server(t)
	c := dial(t, "tcp", s)
	for id, name := range []string{"one.example.", "two.example."} {
		q := question(t, uint16(id), name)
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
			t.Fatal(err)
		}
		var length [2]byte
		if _, err := io.ReadFull(c, length[:]); err != nil {
			t.Fatal(err)
		}
		packet := make([]byte, binary.BigEndian.Uint16(length[:]))
		if _, err := io.ReadFull(c, packet); err != nil {
			t.Fatal(err)
		}
		refused(t, uint16(id), packet)
	}
	if got := s.Names(); !slices.Equal(got, []string{"one.example", "two.example"}) {
		t.Errorf("remembered %q", got)
	}
}

func TestNamesAreBoundedInNumberAndCannotSteerATerminal(t *testing.T) {
	s := server(t)
	c := dial(t, "udp", s)
	ask(t, c, 1, "evil\x1b[2j\n.example.")
	for i := range lookup.MaxNames + 1 {
		ask(t, c, 2, fmt.Sprintf("n%d.example.", i))
	}
	names := s.Names()
	if len(names) != lookup.MaxNames || names[0] != "evil??2j?.example" {
		t.Errorf("remembered %d names, the first %q", len(names), names[0])
	}
}

func TestWhatIsNoQuestionGetsNoAnswer(t *testing.T) {
	s := server(t)
	c := dial(t, "udp", s)
	answer := question(t, 7, "x.example.")
	answer[2] |= 0x80 // says that it is a response: two servers could talk for ever
	for _, packet := range [][]byte{{}, {1}, answer, answer[:12], []byte(strings.Repeat("x", 600))} {
		if _, err := c.Write(packet); err != nil {
			t.Fatal(err)
		}
	}
	ask(t, c, 9, "real.example.") // the first thing that is answered
	if got := s.Names(); !slices.Equal(got, []string{"real.example"}) {
		t.Errorf("remembered %q", got)
	}
}

func TestConnectionsAreFew(t *testing.T) {
	s := server(t)
	var open []net.Conn
	for range lookup.MaxConnections {
		c := dial(t, "tcp", s)
		q := question(t, 1, "x.example.")
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, 2)); err != nil {
			t.Fatal(err)
		}
		open = append(open, c) // answered once, and so counted
	}
	one := dial(t, "tcp", s)
	q := question(t, 1, "x.example.")
	// The write may fail as well, if the server was quicker.
	_, _ = one.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(q))), q...))
	if n, err := one.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("with %d connections another one was answered with %d bytes, %v", len(open), n, err)
	}
}

func TestOnlyLoopbackIsServed(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "localhost:0", "127.0.0.1"} {
		if s, err := lookup.Listen(address); err == nil {
			s.Close()
			t.Errorf("listens at %s", address)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte{})
	s, err := lookup.Listen("127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.Close() })
	f.Fuzz(func(t *testing.T, packet []byte) {
		if reply := lookup.Answer(s, packet); len(reply) > len(packet) {
			t.Errorf("answered %d bytes with %d", len(packet), len(reply))
		}
	})
}
