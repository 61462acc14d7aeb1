package inmem

import (
	"context"
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Conn is one end of a connection.
type Conn struct {
	mu     *sync.Mutex // of both ends and of everything on them
	peer   transport.Peer
	other  *Conn
	limits Limits
	ctx    context.Context
	cancel context.CancelCauseFunc

	unread  int    // bytes that this end has written and the other has not read
	drained signal // unread has shrunk
	shapes  [2]shape
}

// shape is what an end knows of its streams with one or with two directions.
type shape struct {
	most   int
	open   int       // streams that this end has opened and the other holds a place for
	freed  signal    // open has shrunk
	unseen []*stream // opened by this end, in order, of which the other knows nothing yet
	queue  []*stream // opened by the other end, to be accepted
	queued signal
}

const (
	twoWay = 0
	oneWay = 1
)

// Pair returns the two ends of a new connection. Each is told who the other is.
func Pair(limits Limits, ofA, ofB transport.Peer) (a, b *Conn) {
	limits = limits.withDefaults()
	mu := new(sync.Mutex)
	end := func(peer transport.Peer) *Conn {
		c := &Conn{mu: mu, peer: peer, limits: limits}
		c.shapes[twoWay].most, c.shapes[oneWay].most = limits.Streams, limits.SendStreams
		c.ctx, c.cancel = context.WithCancelCause(context.Background())
		return c
	}
	a, b = end(ofA), end(ofB)
	a.other, b.other = b, a
	return a, b
}

// Peer implements transport.Conn.
func (c *Conn) Peer() transport.Peer { return c.peer }

// Context implements transport.Conn.
func (c *Conn) Context() context.Context { return c.ctx }

// Close implements transport.Conn.
func (c *Conn) Close(code protocol.CloseCode) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() == nil {
		c.cancel(&transport.CloseError{Reason: code.Reason()})
		c.other.cancel(&transport.CloseError{Reason: code.Reason(), Remote: true})
	}
}

// Break ends the connection as a dead network does: nobody said why.
func (c *Conn) Break() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cancel(&transport.CloseError{Reason: forge.CloseLost})
	c.other.cancel(&transport.CloseError{Reason: forge.CloseLost})
}

// OpenStream implements transport.Conn.
func (c *Conn) OpenStream(ctx context.Context) (transport.Stream, error) { return c.open(ctx, twoWay) }

// OpenSendStream implements transport.Conn.
func (c *Conn) OpenSendStream(ctx context.Context) (transport.SendStream, error) {
	return c.open(ctx, oneWay)
}

// AcceptStream implements transport.Conn.
func (c *Conn) AcceptStream(ctx context.Context) (transport.Stream, error) {
	return c.accept(ctx, twoWay)
}

// AcceptReceiveStream implements transport.Conn.
func (c *Conn) AcceptReceiveStream(ctx context.Context) (transport.ReceiveStream, error) {
	return c.accept(ctx, oneWay)
}

func (c *Conn) open(ctx context.Context, which int) (*streamEnd, error) {
	s := &c.shapes[which]
	var opened *stream
	err := c.until(ctx, &s.freed, func() bool {
		if s.open >= s.most {
			return false
		}
		s.open++
		opened = newStream(c, which)
		s.unseen = append(s.unseen, opened)
		return true
	})
	if err != nil {
		return nil, err
	}
	return opened.opener(), nil
}

func (c *Conn) accept(ctx context.Context, which int) (*streamEnd, error) {
	s := &c.shapes[which]
	var next *stream
	err := c.until(ctx, &s.queued, func() bool {
		if len(s.queue) == 0 {
			return false
		}
		next, s.queue = s.queue[0], s.queue[1:]
		return true
	})
	if err != nil {
		return nil, err
	}
	return next.accepter(), nil
}

// until waits until what is asked for could be done, trying again after each signal.
func (c *Conn) until(ctx context.Context, again *signal, try func() bool) error {
	for {
		c.mu.Lock()
		switch {
		case c.ctx.Err() != nil:
			c.mu.Unlock()
			return context.Cause(c.ctx)
		case ctx.Err() != nil:
			c.mu.Unlock()
			return context.Cause(ctx)
		case try():
			c.mu.Unlock()
			return nil
		}
		wait := again.wait()
		c.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		case <-c.ctx.Done():
		}
	}
}

// showLocked lets the other end know of a stream, and of those that were opened before it.
func (c *Conn) showLocked(st *stream) {
	s, there := &c.shapes[st.which], &c.other.shapes[st.which]
	for i, unseen := range s.unseen {
		if unseen == st {
			there.queue = append(there.queue, s.unseen[:i+1]...)
			s.unseen = s.unseen[i+1:]
			there.queued.broadcast()
			return
		}
	}
}

// signal wakes everybody that waits for a change. It is used under the lock.
type signal struct{ c chan struct{} }

func (s *signal) wait() <-chan struct{} {
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) broadcast() {
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}
