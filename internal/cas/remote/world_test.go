package remote_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/transport/transporttest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var of = forge.AttemptContext{Attempt: forge.AttemptID{ULID: forge.ULID{3}}, Lease: forge.LeaseID{ULID: forge.ULID{4}}}

// road makes connections.
type road func(t testing.TB) transporttest.Ends

func inMemory(testing.TB) transporttest.Ends {
	peer := transport.Peer{ALPN: protocol.ALPNAgent}
	a, d := inmem.Pair(inmem.Limits{}, peer, peer)
	return transporttest.Ends{Dialled: a, Accepted: d}
}

// overQUIC returns a road of real connections on loopback.
func overQUIC(t testing.TB) road {
	ca := transporttest.NewCA()
	l, err := quic.Listen("127.0.0.1:0", ca.Server(protocol.ALPNAgent), quic.Options{
		Admission: quic.Admission{PerSecond: 1e6, Burst: 1e6, PrefixPerSecond: 1e6, PrefixBurst: 1e6},
	})
	if err != nil {
		t.Fatal(err)
	}
	dialer := quic.NewDialer(ca.Client(ca.Issue("runner", transporttest.Good()), protocol.ALPNAgent), quic.Options{})
	t.Cleanup(func() {
		if err := errors.Join(dialer.Close(), l.Shutdown(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return func(t testing.TB) transporttest.Ends {
		a, err := dialer.Dial(t.Context(), l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		d, err := l.Accept(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return transporttest.Ends{Dialled: a, Accepted: d}
	}
}

// world is an agent and a daemon with a store, and connections that come and go.
type world struct {
	t      testing.TB
	road   road
	mine   link.Config // of the agent
	server *remote.Server
	client *remote.Client
	scope  remote.Scope
	wrap   func(transporttest.Ends) transporttest.Ends // faults

	byHand  func(*link.Link, *link.Inbound) // instead of the server
	serving sync.WaitGroup
	mu      sync.Mutex
	now     *pair // nil: none
	moved   chan struct{}
	errs    []error // of Serve
	conns   []*remote.Connection
}

// pair is one connection.
type pair struct {
	agent, daemon *link.Link
	ends          transporttest.Ends
}

func newWorld(t testing.TB, r road, scope remote.Scope, change ...func(*world)) *world {
	w := &world{t: t, road: r, scope: scope, moved: make(chan struct{}), server: remote.NewServer(remote.ServerConfig{})}
	w.client = remote.New(remote.ClientConfig{Link: w.link})
	for _, c := range change {
		c(w)
	}
	t.Cleanup(w.close)
	return w
}

func (w *world) store() *remote.Store { return w.client.For(of) }

// link returns the newest connection.
func (w *world) link(ctx context.Context) (*link.Link, error) {
	for {
		w.mu.Lock()
		now, moved := w.now, w.moved
		w.mu.Unlock()
		if now != nil && now.agent.Context().Err() == nil {
			return now.agent, nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// connect makes a new connection the newest.
func (w *world) connect() *pair {
	w.t.Helper()
	ends := w.road(w.t)
	if w.wrap != nil {
		ends = w.wrap(ends)
	}
	p := &pair{ends: ends}
	answered := make(chan error, 1)
	go func() {
		var err error
		p.daemon, err = link.Answer(w.t.Context(), ends.Accepted, link.Config{})
		answered <- err
	}()
	mine := w.mine
	mine.Role = protocol.RoleAgent
	var err error
	p.agent, err = link.Connect(w.t.Context(), ends.Dialled, mine, forge.AgentSessionID{ULID: forge.ULID{2}})
	if err := errors.Join(err, <-answered); err != nil {
		w.t.Fatal(err)
	}
	for _, m := range []forge.Message{
		&forge.RegistrationAccepted{
			ServerTime: 1, Transport: forge.TransportSessionID{ULID: forge.ULID{9}}, Policy: forge.DefaultLeasePolicy(),
		}, &forge.ResyncReply{Nonce: 1},
	} {
		if err := p.daemon.Send(w.t.Context(), forge.Frame{ID: ident.New[forge.MessageID](), Body: m}); err != nil {
			w.t.Fatal(err)
		}
		if _, err := p.agent.Receive(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
	w.serving.Go(func() { w.serve(p.daemon) })
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = p
	close(w.moved)
	w.moved = make(chan struct{})
	return p
}

// serve serves one connection as a daemon does.
func (w *world) serve(l *link.Link) {
	conn := w.server.Connection(l)
	var streams sync.WaitGroup
	defer func() {
		streams.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		w.conns = append(w.conns, conn)
	}()
	for {
		in, err := l.Accept(context.Background())
		if err != nil {
			return
		}
		streams.Go(func() {
			if w.byHand != nil {
				w.byHand(l, in)
				return
			}
			if err := conn.Serve(l.Context(), in, w.scope); err != nil {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.errs = append(w.errs, err)
			}
		})
	}
}

// served returns what Serve has complained of.
func (w *world) served() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.errs
}

// cut ends the connection without a word.
func (p *pair) cut() {
	if b, ok := p.ends.Dialled.(interface{ Cut() }); ok {
		b.Cut()
	} else {
		transporttest.Wrap(p.ends.Dialled, transporttest.Faults{}).Cut()
	}
	p.close()
}

func (p *pair) close() {
	p.agent.Close(forge.CloseLost)
	p.daemon.Close(forge.CloseLost)
}

func (w *world) close() {
	w.mu.Lock()
	now := w.now
	w.mu.Unlock()
	if now != nil {
		now.close()
	}
	w.serving.Wait()
	for _, conn := range w.conns {
		if !conn.Idle() {
			w.t.Error("a connection of the daemon has kept memory, places or bytes on their way")
		}
	}
	if !w.client.Idle() {
		w.t.Error("the client has kept memory, places or bytes on their way")
	}
}

// shelf is a store in memory, as the scope of an attempt.
type shelf struct {
	mu      sync.Mutex
	objects map[digest.Ref][]byte
	parts   map[digest.Ref][]byte
	held    map[digest.Ref]*part
	hidden  map[digest.Ref]bool // there, and not for this attempt
	damage  map[digest.Ref]bool // damaged
	fails   func() error        // of every call that stores
	stored  chan struct{}       // gets a token for each object stored, if there is room
	written func(total int)     // of parts, all together
	given   func(total int)     // of one object that is read
	total   int
}

func newShelf(objects ...[]byte) *shelf {
	s := &shelf{
		objects: map[digest.Ref][]byte{}, parts: map[digest.Ref][]byte{}, held: map[digest.Ref]*part{}, hidden: map[digest.Ref]bool{},
		damage: map[digest.Ref]bool{}, stored: make(chan struct{}, 1),
	}
	for _, o := range objects {
		s.objects[digest.RefOf(o)] = o
	}
	return s
}

func (s *shelf) has(b []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	got, ok := s.objects[digest.RefOf(b)]
	return ok && bytes.Equal(got, b)
}

func (s *shelf) Open(_ context.Context, ref digest.Ref) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.objects[ref]
	if !ok || s.hidden[ref] {
		return nil, cas.ErrNotFound
	}
	if s.damage[ref] {
		bad := bytes.Clone(b)
		bad[len(bad)/2]++
		return io.NopCloser(&checked{r: bytes.NewReader(bad), ref: ref, hash: digest.NewHash()}), nil
	}
	var r io.Reader = bytes.NewReader(b)
	if s.given != nil {
		r = &counting{Reader: r, hook: s.given}
	}
	return io.NopCloser(&checked{r: r, ref: ref, hash: digest.NewHash()}), nil
}

// checked verifies what it reads.
type checked struct {
	r    io.Reader
	ref  digest.Ref
	hash *digest.Hash
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	_, _ = c.hash.Write(p[:n])
	if errors.Is(err, io.EOF) && c.hash.Ref() != c.ref {
		err = &cas.CorruptError{Ref: c.ref, Where: "the shelf"}
	}
	return n, err
}

func (s *shelf) Missing(_ context.Context, refs []digest.Ref) (missing []digest.Ref, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := map[digest.Ref]bool{}
	for _, ref := range refs {
		if _, ok := s.objects[ref]; !ok && !seen[ref] {
			missing = append(missing, ref)
		}
		seen[ref] = true
	}
	return missing, nil
}

func (s *shelf) Put(_ context.Context, ref digest.Ref, r io.Reader) error {
	b, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return s.put(ref, b)
}

func (s *shelf) put(ref digest.Ref, b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails != nil {
		if err := s.fails(); err != nil {
			return err
		}
	}
	if got := digest.RefOf(b); got != ref {
		return &cas.MismatchError{Ref: ref, Got: got}
	}
	s.objects[ref] = b
	select {
	case s.stored <- struct{}{}:
	default:
	}
	return nil
}

func (s *shelf) Part(ctx context.Context, ref digest.Ref, yield func()) (remote.Part, error) {
	for {
		s.mu.Lock()
		other := s.held[ref]
		if other == nil {
			defer s.mu.Unlock()
			if _, ok := s.objects[ref]; ok {
				return nil, remote.ErrPresent
			}
			b := make([]byte, 0, ref.Bytes)
			p := &part{shelf: s, ref: ref, b: append(b, s.parts[ref]...), yield: yield, closed: make(chan struct{})}
			s.held[ref] = p
			return p, nil
		}
		s.mu.Unlock()
		other.asked.Do(other.yield)
		select {
		case <-other.closed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// part is held by one at a time.
type part struct {
	shelf  *shelf
	ref    digest.Ref
	b      []byte
	done   bool
	yield  func()
	asked  sync.Once
	closed chan struct{}
}

func (p *part) Held() uint64 { return uint64(len(p.b)) }

func (p *part) Write(b []byte) (int, error) {
	p.b = append(p.b, b...)
	p.shelf.mu.Lock()
	p.shelf.total += len(b)
	written, total := p.shelf.written, p.shelf.total
	p.shelf.mu.Unlock()
	if written != nil {
		written(total)
	}
	return len(b), nil
}

func (p *part) Commit(context.Context) error {
	p.done = true
	return p.shelf.put(p.ref, p.b)
}

func (p *part) Close() error {
	p.shelf.mu.Lock()
	defer p.shelf.mu.Unlock()
	delete(p.shelf.parts, p.ref)
	if !p.done {
		p.shelf.parts[p.ref] = p.b
	}
	delete(p.shelf.held, p.ref)
	close(p.closed)
	return nil
}

// noise returns bytes that nothing compresses.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)})
	_, _ = r.Read(b)
	return b
}

func refsOf(objects [][]byte) []digest.Ref {
	refs := make([]digest.Ref, len(objects))
	for i, o := range objects {
		refs[i] = digest.RefOf(o)
	}
	return refs
}
