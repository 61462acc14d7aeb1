package launch

import (
	"os"
	"sync"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
)

// outbox keeps answers until the agent reads them, so that the loop does not wait for an agent that is stopped. It holds at
// most two for each sandbox that was ordered, and an agent that does not read orders none.
type outbox struct {
	conn *packet.Conn
	done chan struct{} // closed when the writer has ended

	mu     sync.Mutex
	wake   sync.Cond
	wait   []letter
	closed bool
}

type letter struct {
	answer sandbox.Answer
	files  []*os.File // go with it and are closed then
}

func newOutbox(conn *packet.Conn) *outbox {
	o := &outbox{conn: conn, done: make(chan struct{})}
	o.wake.L = &o.mu
	go o.write()
	return o
}

func (o *outbox) put(a sandbox.Answer, files []*os.File) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.wait = append(o.wait, letter{a, files})
	o.wake.Signal()
}

// write sends what there is until the box is closed and empty. An agent that has gone misses it.
func (o *outbox) write() {
	defer close(o.done)
	for {
		l, ok := o.take()
		if !ok {
			return
		}
		_ = o.conn.Send(&l.answer, l.files...)
		packet.CloseFiles(l.files)
	}
}

func (o *outbox) take() (letter, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.wait) == 0 {
		if o.closed {
			return letter{}, false
		}
		o.wake.Wait()
	}
	l := o.wait[0]
	o.wait = o.wait[1:]
	return l, true
}

// close waits until everything is sent.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.wake.Signal()
	o.mu.Unlock()
	<-o.done
}
