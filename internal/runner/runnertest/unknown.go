package runnertest

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
)

// tapped is a road whose first stream, which is the control stream, can be written past the link.
type tapped struct {
	*inmem.Conn
	mu      sync.Mutex
	control transport.Stream
}

// AcceptStream implements transport.Conn.
func (w *tapped) AcceptStream(ctx context.Context) (transport.Stream, error) {
	s, err := w.Conn.AcceptStream(ctx)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.control == nil {
		w.control = s
	}
	return s, nil
}

// SayUnknown asks for something of a type that no registry has, as a daemon of a later version might, and returns the id of
// the request. Nothing else may be said on the connection meanwhile.
func (d *Daemon) SayUnknown(c *Conn) forge.MessageID {
	d.t.Helper()
	id := ident.New[forge.MessageID]()
	b, err := c.AppendFrame(nil, id, forge.MessageID{}, protocol.Unsupported())
	if err != nil {
		d.t.Fatal(err)
	}
	binary.BigEndian.PutUint16(b[4:], unknownType)
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if _, err := c.wire.control.Write(b); err != nil {
		d.t.Fatal(err)
	}
	return id
}

// unknownType stands behind the length in the header of a frame. The families of types end below it.
const unknownType = 0x08ff
