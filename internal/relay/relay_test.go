package relay

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// deadline bounds every wait of these tests; reaching it is a failure.
const deadline = 20 * time.Second

// A bench is a relay between a server and clients, on loopback.
type bench struct {
	t       *testing.T
	relay   *Relay
	server  *net.UDPConn
	changed <-chan struct{}
}

func listen(t *testing.T) *net.UDPConn {
	t.Helper()
	c, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(deadline)); err != nil {
		t.Fatal(err)
	}
	return c
}

func start(t *testing.T, cfg Config) *bench {
	t.Helper()
	changed := make(chan struct{}, 1)
	b := &bench{t: t, server: listen(t), changed: changed}
	cfg.Listen, cfg.To, cfg.changed = "127.0.0.1:0", b.server.LocalAddr().String(), changed
	r, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.relay = r
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return b
}

func (b *bench) client() *net.UDPConn {
	b.t.Helper()
	c, err := net.Dial("udp", b.relay.Addr())
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(deadline)); err != nil {
		b.t.Fatal(err)
	}
	return c.(*net.UDPConn)
}

func send(t *testing.T, c *net.UDPConn, text string) {
	t.Helper()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c *net.UDPConn) (string, netip.AddrPort) {
	t.Helper()
	buffer := make([]byte, maxDatagram)
	n, from, err := c.ReadFromUDPAddrPort(buffer)
	if err != nil {
		t.Fatal(err)
	}
	return string(buffer[:n]), from
}

// until waits until the relay's figures satisfy ok.
func (b *bench) until(what string, ok func(Stats) bool) {
	b.t.Helper()
	end := time.NewTimer(deadline)
	defer end.Stop()
	for !ok(b.relay.Stats()) {
		select {
		case <-b.changed:
		case <-end.C:
			b.t.Fatalf("not reached: %s; %v", what, b.relay.Stats())
		}
	}
}

func TestEachClientHasItsOwnWay(t *testing.T) {
	b := start(t, Config{})
	one, two := b.client(), b.client()
	send(t, one, "from one")
	text, portOne := receive(t, b.server)
	send(t, two, "from two")
	text2, portTwo := receive(t, b.server)
	b.until("both were sent", func(s Stats) bool { return s.Up.Sent == 2 && s.Up.Bytes == uint64(len("from onefrom two")) })
	if text != "from one" || text2 != "from two" || portOne == portTwo {
		t.Fatalf("the server got %q from %v and %q from %v", text, portOne, text2, portTwo)
	}
	for port, want := range map[netip.AddrPort]*net.UDPConn{portTwo: two, portOne: one} {
		if _, err := b.server.WriteToUDPAddrPort([]byte(port.String()), port); err != nil {
			t.Fatal(err)
		}
		if got, _ := receive(t, want); got != port.String() {
			t.Errorf("a client got %q, want %q", got, port)
		}
	}
}

func TestARebindLooksLikeANewAddressToTheServerOnly(t *testing.T) {
	b := start(t, Config{})
	c := b.client()
	send(t, c, "before")
	_, before := receive(t, b.server)
	if err := b.relay.Rebind(); err != nil {
		t.Fatal(err)
	}
	send(t, c, "after")
	_, after := receive(t, b.server)
	if before == after {
		t.Fatalf("the server still sees %v", before)
	}
	if _, err := b.server.WriteToUDPAddrPort([]byte("hello"), after); err != nil {
		t.Fatal(err)
	}
	if got, _ := receive(t, c); got != "hello" {
		t.Errorf("the client got %q", got)
	}
}

// delivered sends numbered datagrams through a relay and returns how often each came.
func delivered(t *testing.T, seed uint64, s Settings, count uint64) map[string]int {
	t.Helper()
	b := start(t, Config{Seed: seed, Settings: s})
	c := b.client()
	for i := range count {
		send(t, c, fmt.Sprint(i))
		b.until("the datagram has arrived", func(s Stats) bool { return s.Up.Received == i+1 })
	}
	b.until("all are through", func(s Stats) bool { return s.Up.Sent == count-s.Up.Lost+s.Up.Duplicated })
	came := map[string]int{}
	for range b.relay.Stats().Up.Sent {
		text, _ := receive(t, b.server)
		came[text]++
	}
	return came
}

func TestTheSameTrafficMeetsTheSameFate(t *testing.T) {
	s := Settings{Loss: 0.3, Duplicate: 0.2, Reorder: 0.2}
	first := delivered(t, 7, s, 100)
	if diff := cmp.Diff(first, delivered(t, 7, s, 100)); diff != "" {
		t.Errorf("the same seed, another fate: %s", diff)
	}
	if maps.Equal(first, delivered(t, 8, s, 100)) {
		t.Error("another seed, the same fate")
	}
	if lost := 100 - len(first); lost < 10 || lost > 60 {
		t.Errorf("%d of 100 datagrams were lost at 0.3", lost)
	}
}

func TestADuplicateComesTwice(t *testing.T) {
	for text, n := range delivered(t, 1, Settings{Duplicate: 1}, 10) {
		if n != 2 {
			t.Errorf("%s came %d times", text, n)
		}
	}
}

func TestADatagramThatIsHeldBackIsOvertaken(t *testing.T) {
	seed := uint64(0)
	s := Settings{Reorder: 0.5}
	for !fateOf(seed, 0, Up, 0, s).late || fateOf(seed, 0, Up, 1, s).late {
		seed++
	}
	synctest.Test(t, func(t *testing.T) { // in which no time passes between two datagrams, however slow the machine is
		r := &Relay{cfg: Config{Seed: seed}, settings: s, wake: make(chan struct{}, 1)}
		c := &client{}
		r.pass(c, Up, []byte("first"))
		r.pass(c, Up, []byte("second"))
		for i, want := range []string{"second", "first"} {
			if p, wait, ok := r.next(time.Now().Add(time.Duration(i) * overtaken)); !ok || string(p.data) != want {
				t.Errorf("number %d is %q, wait %v; want %q", i, p.data, wait, want)
			}
		}
	})
}

func TestACutEndsOneDirectionOrBoth(t *testing.T) {
	b := start(t, Config{})
	c := b.client()
	send(t, c, "hello")
	_, port := receive(t, b.server)
	b.relay.Cut(Up)
	send(t, c, "lost")
	b.until("cut", func(s Stats) bool { return s.Up.Cut == 1 })
	if _, err := b.server.WriteToUDPAddrPort([]byte("still down"), port); err != nil {
		t.Fatal(err)
	}
	if got, _ := receive(t, c); got != "still down" {
		t.Errorf("got %q", got)
	}
	b.relay.Cut(Up, Down)
	if _, err := b.server.WriteToUDPAddrPort([]byte("lost too"), port); err != nil {
		t.Fatal(err)
	}
	b.until("cut down", func(s Stats) bool { return s.Down.Cut == 1 })
	b.relay.Heal(Up, Down)
	send(t, c, "again")
	if got, from := receive(t, b.server); got != "again" || from != port {
		t.Errorf("after the cut the server got %q from %v", got, from)
	}
}

func TestACutTakesWhatIsUnderWay(t *testing.T) {
	b := start(t, Config{Settings: Settings{Delay: 200 * time.Millisecond}})
	send(t, b.client(), "under way")
	b.until("taken", func(s Stats) bool { return s.Up.Received == 1 })
	b.relay.Cut(Up)
	b.until("cut", func(s Stats) bool { return s.Up.Cut == 1 })
	if s := b.relay.Stats(); s.Up.Sent != 0 {
		t.Errorf("%v", s)
	}
}

func TestPlannedCutsComeAndGo(t *testing.T) {
	b := start(t, Config{Cuts: []Cut{{After: 0, For: 50 * time.Millisecond, Ways: []Direction{Down}}}})
	isCut := func() bool { b.relay.mu.Lock(); defer b.relay.mu.Unlock(); return b.relay.cut[Down] }
	c := b.client()
	send(t, c, "hello")
	_, port := receive(t, b.server)
	b.until("the cut is over", func(Stats) bool { return !isCut() })
	if _, err := b.server.WriteToUDPAddrPort([]byte("healed"), port); err != nil {
		t.Fatal(err)
	}
	for {
		if got, _ := receive(t, c); got == "healed" {
			return
		}
	}
}

func TestTooLongDatagramsAreDropped(t *testing.T) {
	b := start(t, Config{Settings: Settings{MTU: 5}})
	c := b.client()
	send(t, c, "123456")
	send(t, c, "12345")
	if got, _ := receive(t, b.server); got != "12345" {
		t.Errorf("got %q", got)
	}
	if s := b.relay.Stats(); s.Up.TooLong != 1 {
		t.Errorf("%v", s)
	}
}

// Case B98: a daemon that is not there yet.
func TestAServerThatComesLaterIsReached(t *testing.T) {
	b := start(t, Config{})
	address := b.server.LocalAddr().(*net.UDPAddr)
	_ = b.server.Close()
	c := b.client()
	send(t, c, "into the void")
	b.until("it is gone", func(s Stats) bool { return s.Up.Sent+s.Up.Rejected == 1 })
	server, err := net.ListenUDP("udp", address)
	if err != nil {
		t.Skip("another process took the port: ", err)
	}
	defer server.Close()
	_ = server.SetDeadline(time.Now().Add(deadline))
	for {
		send(t, c, "hello")
		_ = server.SetReadDeadline(time.Now().Add(time.Second))
		buffer := make([]byte, 16)
		if n, err := server.Read(buffer); err == nil && string(buffer[:n]) == "hello" {
			return
		}
	}
}

func TestTheRateSpacesDatagrams(t *testing.T) {
	r := &Relay{settings: Settings{Rate: 1000}}
	now := time.Now()
	var got []time.Duration
	for range 3 {
		got = append(got, r.departureLocked(Up, now, 100).Sub(now))
	}
	got = append(got, r.departureLocked(Down, now, 100).Sub(now))
	got = append(got, r.departureLocked(Up, now.Add(time.Hour), 100).Sub(now))
	want := []time.Duration{100, 200, 300, 100, 3600_100}
	for i := range want {
		want[i] *= time.Millisecond
	}
	if !slices.Equal(got, want) {
		t.Errorf("departures %v, want %v", got, want)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	r := &Relay{settings: Settings{Delay: MaxDelay}, wake: make(chan struct{}, 1)}
	c := &client{}
	for range MaxQueued + 3 {
		r.pass(c, Up, nil)
	}
	if s := r.Stats(); r.queue.Len() != MaxQueued || s.Up.Overflow != 3 {
		t.Errorf("%d in the queue, %v", r.queue.Len(), s)
	}
}

func TestTheClientThatWasSilentForLongestMakesRoom(t *testing.T) {
	b := start(t, Config{})
	address := func(i int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, byte(i >> 8), byte(i)}), 1)
	}
	for i := range MaxClients {
		if _, err := b.relay.client(address(i)); err != nil {
			t.Skip("not enough sockets here: ", err)
		}
	}
	for _, i := range []int{0, MaxClients} { // the first is heard again, then one too many comes
		if _, err := b.relay.client(address(i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(b.relay.clients); n != MaxClients || b.relay.clients[address(0)] == nil || b.relay.clients[address(1)] != nil {
		t.Errorf("%d clients; the first stays: %t, the second goes: %t", n, b.relay.clients[address(0)] != nil, b.relay.clients[address(1)] == nil)
	}
}
