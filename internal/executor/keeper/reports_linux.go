package keeper

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// reports tells the agent what a machine has to say. What the agent's socket takes at once is written where it is said. From
// the first report on that it does not, they wait in a queue, which has room for all there can be: a machine never waits
// for an agent that is stopped. One goroutine says and closes; the queue has one of its own.
type reports struct {
	agent *os.File
	raw   syscall.RawConn // nil where the socket cannot be asked
	gone  bool            // nobody listens any more
	most  int

	queue chan []byte   // nil until it is needed
	done  chan struct{} // closed when the queue is written
}

func newReports(agent *os.File, most int) *reports {
	raw, err := agent.SyscallConn()
	if err != nil {
		raw = nil
	}
	return &reports{agent: agent, raw: raw, most: most}
}

// say tells the agent, sooner or later, unless it is gone.
func (o *reports) say(r Report) {
	if o.gone {
		return
	}
	frame, err := frameOf(&r)
	if err != nil {
		o.gone = true // no report is that long; without this one the others make no sense
		return
	}
	if o.queue == nil {
		if frame = o.now(frame); len(frame) == 0 || o.gone {
			return
		}
		o.queue, o.done = make(chan []byte, o.most), make(chan struct{})
		go o.write()
	}
	o.queue <- frame
}

// now writes what fits, and returns the rest.
func (o *reports) now(frame []byte) []byte {
	if o.raw == nil {
		return frame
	}
	err := o.raw.Control(func(fd uintptr) {
		n, err := unix.SendmsgN(int(fd), frame, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		o.gone = errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET)
		if err == nil {
			frame = frame[n:]
		}
	})
	o.gone = o.gone || err != nil
	return frame
}

// write writes the queue, and goes on to empty it if nobody listens.
func (o *reports) write() {
	defer close(o.done)
	var gone error
	for frame := range o.queue {
		if gone == nil {
			_, gone = o.agent.Write(frame)
		}
	}
}

// close returns when all that was said is written. Nothing is said afterwards.
func (o *reports) close() {
	if o.queue != nil {
		close(o.queue)
		<-o.done
	}
}
