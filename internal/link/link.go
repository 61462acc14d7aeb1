// Package link is one negotiated connection between an agent and a daemon: the hello, control frames that pass the gate,
// and streams whose headers were read.
//
//	agent   Connect ─▶ control stream ─▶ Hello ─────▶ HelloAck ─▶ Receive, Send, Open, OpenSend
//	daemon  Answer  ◀─ control stream ◀─ Hello, HelloAck ──────▶  Receive, Send, Accept
//
// It carries what both sides say and refuses what may not come: too large, too much, too late, malformed, in another
// version, from another role, in the wrong state. What a message means, which answer is due and when to connect again is
// decided above it, in the cores.
//
// A violation is told to the Observer first. One of a stream resets that stream; any other closes the connection with its
// code. A request of a kind that was not negotiated is answered UNSUPPORTED before.
//
// A Link owns a reader of its control stream, an accept loop for each kind of streams and one goroutine for each stream
// whose header is on its way. Close joins them.
package link

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Link is one negotiated connection. All methods may be called from several goroutines at once.
type Link struct {
	cfg    Config
	conn   transport.Conn
	daemon bool // this end is the daemon
	ctx    context.Context
	cancel context.CancelCauseFunc
	once   sync.Once // of end
	wait   sync.WaitGroup

	control  transport.Stream
	writing  chan struct{} // a token: whoever has it may write on the control stream
	frames   *protocol.FrameReader
	messages chan Message  // the reader hands them over one by one
	ended    chan struct{} // closed when the peer has ended its side of the control stream
	inbound  chan *Inbound
	headers  chan struct{} // a token for each header that is being read
	working  chan struct{} // closed once the connection is active

	mu      sync.Mutex
	hello   *protocol.HelloV1 // of the agent; ours on the agent's side
	gate    protocol.Gate
	version protocol.Version
	speaker speaker
	bad     protocol.BadStreams
	open    map[protocol.StreamKind]int // streams of the peer that have not ended
}

// speaker is whose name the peer may use.
type speaker struct {
	known   bool
	runner  forge.RunnerID
	session forge.AgentSessionID
}

func newLink(conn transport.Conn, cfg Config, daemon bool) *Link {
	cfg = cfg.withDefaults()
	l := &Link{
		cfg: cfg, conn: conn, daemon: daemon,
		writing: make(chan struct{}, 1), messages: make(chan Message), ended: make(chan struct{}),
		inbound: make(chan *Inbound), headers: make(chan struct{}, cfg.Headers), working: make(chan struct{}),
		gate: protocol.Gate{ALPN: conn.Peer().ALPN, State: forge.ConnNegotiating},
		open: map[protocol.StreamKind]int{},
	}
	l.ctx, l.cancel = context.WithCancelCause(conn.Context())
	return l
}

// start begins to read and to accept, once the peers have agreed.
func (l *Link) start(s protocol.Selection) {
	l.mu.Lock()
	l.gate.Features, l.version = s.Features, s.Version
	l.gate.State = forge.ConnRegistering
	l.mu.Unlock()
	l.wait.Go(l.read)
	l.wait.Go(func() { l.acceptStreams(l.acceptTwoWay) })
	l.wait.Go(func() { l.acceptStreams(l.acceptOneWay) })
}

// Peer says who is at the other end.
func (l *Link) Peer() transport.Peer { return l.conn.Peer() }

// Hello returns what the agent has said in its Hello; nil before it came.
func (l *Link) Hello() *protocol.HelloV1 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.hello
}

// Version is the version that both peers speak on this connection.
func (l *Link) Version() protocol.Version {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.version
}

// Features is what both peers know of what is optional.
func (l *Link) Features() protocol.FeatureSet {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gate.Features
}

// State is where the connection stands.
func (l *Link) State() forge.ConnectionState {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gate.State
}

// SetState moves the connection on; a state that it has passed already changes nothing. Registration and resync need no
// call: the link sees the messages that end them, in the order in which they are on the wire. Draining and closing do.
func (l *Link) SetState(state forge.ConnectionState) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gate.State < forge.ConnActive && state >= forge.ConnActive {
		close(l.working)
	}
	l.gate.State = max(l.gate.State, state)
}

// Working closes once streams of work may be opened: when the connection is active, or has ended before it was.
func (l *Link) Working() <-chan struct{} { return l.working }

// moves says into which state a message takes a connection, on either side of it.
func moves(id protocol.TypeID) (forge.ConnectionState, bool) {
	switch id {
	case protocol.TypeRegistrationAccepted:
		return forge.ConnResyncing, true
	case protocol.TypeResyncReply:
		return forge.ConnActive, true
	}
	return 0, false
}

// Bind says in whose name the peer may speak, and to whom: a message that names another runner or session is a violation
// from then on. A zero session stands for one that is not registered yet.
func (l *Link) Bind(runner forge.RunnerID, session forge.AgentSessionID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.speaker = speaker{known: true, runner: runner, session: session}
}

// Context ends with the connection; its cause is a *transport.CloseError.
func (l *Link) Context() context.Context { return l.ctx }

// Close ends the connection and joins everything that the link has started. Only the first reason counts. It must not be
// called from an Observer.
func (l *Link) Close(reason forge.CloseReason) {
	l.end(reason, nil)
	l.wait.Wait()
}

// Finish closes the connection once the peer has read everything that was sent on the control stream, or after a while.
// Frames that still come are not read.
func (l *Link) Finish(reason forge.CloseReason) {
	l.finish(reason, nil)
	l.wait.Wait()
}

// finish ends our side of the control stream. The peer's reader answers that by ending its own, so what it answers was
// read. The peer gets the code as long as the connection lives.
func (l *Link) finish(reason forge.CloseReason, cause error) {
	l.SetState(forge.ConnClosing)
	timer := time.NewTimer(l.cfg.Linger)
	defer timer.Stop()
	select {
	case l.writing <- struct{}{}: // and it stays taken
		if l.control.Close() == nil {
			l.awaitEnd(timer.C)
		}
	case <-timer.C:
	case <-l.ctx.Done():
	}
	l.end(reason, cause)
}

// awaitEnd reads the rest of the control stream where no reader does, and waits for its end.
func (l *Link) awaitEnd(late <-chan time.Time) {
	for {
		select {
		case <-l.messages: // nobody waits for it any more
		case <-l.ended:
			return
		case <-late:
			return
		case <-l.ctx.Done():
			return
		}
	}
}

// end closes the connection. It joins nothing, so that the link's own goroutines may call it.
func (l *Link) end(reason forge.CloseReason, cause error) {
	l.once.Do(func() { // both or neither: whoever learns of the cause may close for another reason
		l.SetState(forge.ConnClosed)
		l.cancel(&transport.CloseError{Reason: reason, Err: cause})
		l.conn.Close(protocol.CloseCodeOf(reason))
	})
}

// ending returns why the connection ended. It waits for that where the connection is about to: its own context ends a
// moment before ours.
func (l *Link) ending() error {
	<-l.ctx.Done()
	return context.Cause(l.ctx)
}

// broken ends the connection after an error of the road, unless it ended by itself.
func (l *Link) broken(err error) error {
	var closed *transport.CloseError
	if errors.As(err, &closed) || l.conn.Context().Err() != nil {
		return l.ending()
	}
	l.end(forge.CloseLost, err)
	return l.ending()
}

// nowMs is the time that goes into envelopes, for diagnostics.
func nowMs() int64 { return clock.Wall().UnixMilli() }
