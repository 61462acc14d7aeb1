package remote

import (
	"bufio"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/casv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// readAhead is what a stream reads ahead of what it is asked for. Long runs pass it by.
const readAhead = 16 << 10

// voice is a stream of objects: frames and raw bytes in both directions. One goroutine reads; any may write.
type voice struct {
	link   *link.Link
	s      transport.SendStream
	r      transport.ReceiveStream
	in     *bufio.Reader
	frames *link.Frames

	mu      sync.Mutex
	pending []byte        // frames that the next writer takes along
	writing chan struct{} // a token: whoever has it may write, and use room
	room    []byte
}

// buffered is a stream that is read through a buffer, frames and raw bytes alike.
type buffered struct {
	transport.ReceiveStream
	in *bufio.Reader
}

func (b buffered) Read(p []byte) (int, error) { return b.in.Read(p) }

func newVoice(l *link.Link, kind protocol.StreamKind, r transport.ReceiveStream, s transport.SendStream) *voice {
	v := &voice{link: l, s: s, r: r, in: bufio.NewReaderSize(r, readAhead), writing: make(chan struct{}, 1)}
	v.frames = l.Frames(kind, buffered{r, v.in}, s)
	s.SetPriority(transport.PriorityTransfer)
	return v
}

// say writes a frame. Frames of several callers leave together where they come together.
func (v *voice) say(m protocol.Message) error {
	if err := v.add(m); err != nil {
		return err
	}
	v.writing <- struct{}{}
	defer func() { <-v.writing }()
	return v.flush(nil)
}

// run writes a header and its bytes.
func (v *voice) run(h *casv1.CasHeaderV1, encoded []byte) error {
	v.writing <- struct{}{}
	defer func() { <-v.writing }()
	if err := v.add(h); err != nil {
		return err
	}
	return v.flush(encoded)
}

// add appends a frame to those that the next writer takes along.
func (v *voice) add(m protocol.Message) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	b, err := v.link.AppendFrame(v.pending, ident.New[forge.MessageID](), forge.MessageID{}, m)
	if err == nil {
		v.pending = b
	}
	return err
}

// flush writes what is pending, and bytes behind it. Its caller may write.
func (v *voice) flush(behind []byte) error {
	v.mu.Lock()
	v.room, v.pending = v.pending, v.room[:0]
	v.mu.Unlock()
	if len(v.room) == 0 && len(behind) == 0 {
		return nil // another writer took it along
	}
	if err := v.s.SetWriteDeadline(time.Now().Add(writeWithin)); err != nil {
		return err
	}
	if len(behind) < readAhead {
		v.room, behind = append(v.room, behind...), nil
	}
	_, err := v.s.Write(v.room)
	if err == nil && len(behind) > 0 {
		_, err = v.s.Write(behind)
	}
	return err
}

// next reads the next frame. io.EOF: the peer has ended its direction.
func (v *voice) next() (protocol.Message, error) {
	if err := v.r.SetReadDeadline(time.Now().Add(idleWithin)); err != nil {
		return nil, err
	}
	_, m, err := v.frames.Next()
	if violation, ok := errors.AsType[*protocol.Violation](err); ok && violation.Fault == protocol.FaultState && v.link.State() >= forge.ConnClosing {
		err = &transport.CloseError{Reason: forge.CloseLost, Err: err} // it came beside the end of the connection, which is no fault
	}
	return m, err
}

// raw reads the bytes behind a header.
func (v *voice) raw(b []byte) error {
	if err := v.r.SetReadDeadline(time.Now().Add(runWithin + time.Duration(len(b))*time.Second/slowest)); err != nil {
		return err
	}
	_, err := io.ReadFull(v.in, b)
	return err
}

// reset gives both directions up.
func (v *voice) reset(code protocol.ResetCode) {
	v.r.Stop(code)
	v.s.Reset(code)
}
