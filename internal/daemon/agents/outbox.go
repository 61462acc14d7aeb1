package agents

import (
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// MaxOutbox is how many frames may wait for a peer to take them.
const MaxOutbox = 1024

// outgoing is something to be sent: a domain frame, or a message that the domain has no value for.
type outgoing struct {
	frame forge.Frame
	wire  protocol.Message
}

// outbox is what waits to be written on a control stream: frames in their order, and behind them acknowledgements of logs, of
// which only the latest of each attempt counts.
type outbox struct {
	mu     sync.Mutex
	frames []outgoing
	acks   map[forge.AttemptID]forge.LogSeq
	order  []forge.AttemptID // of acks
	busy   bool              // what was popped last is being written
	closed bool
	wake   chan struct{} // holds one token when there is something new
	empty  chan struct{} // closed when nothing waits any more; nil while nobody asks
}

func newOutbox() *outbox {
	return &outbox{acks: map[forge.AttemptID]forge.LogSeq{}, wake: make(chan struct{}, 1)}
}

// push adds a frame. It reports false where too many wait.
func (o *outbox) push(out outgoing) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return true // nobody waits for it
	}
	if len(o.frames) >= MaxOutbox {
		return false
	}
	o.frames = append(o.frames, out)
	o.signal()
	return true
}

// ack adds an acknowledgement, in place of an older one.
func (o *outbox) ack(attempt forge.AttemptID, next forge.LogSeq) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return
	}
	known, waits := o.acks[attempt]
	if !waits {
		o.order = append(o.order, attempt)
	}
	o.acks[attempt] = max(known, next)
	o.signal()
}

func (o *outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// pop takes the next thing to be sent, or reports false where there is none. What was popped before is written by now.
func (o *outbox) pop() (outgoing, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy = true
	if len(o.frames) > 0 {
		out := o.frames[0]
		o.frames[0], o.frames = outgoing{}, o.frames[1:]
		return out, true
	}
	if len(o.order) > 0 {
		attempt := o.order[0]
		o.order = o.order[1:]
		next := o.acks[attempt]
		delete(o.acks, attempt)
		return outgoing{frame: forge.Frame{ID: newMessageID(), Body: &forge.LogAck{Attempt: attempt, Next: next}}}, true
	}
	o.busy = false
	if o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
	return outgoing{}, false
}

// flushed returns a channel that is closed once everything that waits now was written, or never will be.
func (o *outbox) flushed() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.empty == nil {
		o.empty = make(chan struct{})
	}
	empty := o.empty
	if o.closed || !o.busy && len(o.frames) == 0 && len(o.order) == 0 {
		close(o.empty)
		o.empty = nil
	}
	return empty
}

// close drops what waits.
func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed, o.frames, o.order = true, nil, nil
	clear(o.acks)
	if o.empty != nil {
		close(o.empty)
		o.empty = nil
	}
}
