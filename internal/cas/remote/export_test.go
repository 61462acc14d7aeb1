package remote

import "github.com/forgeyard/forgeyard/internal/protocol"

// Idle reports whether all memory and all places of a connection came back.
func (c *Connection) Idle() bool {
	for _, place := range c.places {
		if !place.TryAcquire(int64(c.server.cfg.Streams)) {
			return false
		}
		place.Release(int64(c.server.cfg.Streams))
	}
	if !c.server.memory.TryAcquire(c.server.cfg.Memory) {
		return false
	}
	c.server.memory.Release(c.server.cfg.Memory)
	return c.pace.flying == 0
}

// Idle reports whether all memory and all places came back.
func (c *Client) Idle() bool {
	for _, kind := range []protocol.StreamKind{protocol.StreamCASUpload, protocol.StreamCASDownload} {
		if !c.places[kind].TryAcquire(int64(c.cfg.Streams)) {
			return false
		}
		c.places[kind].Release(int64(c.cfg.Streams))
	}
	if !c.memory.all.TryAcquire(c.cfg.Memory) {
		return false
	}
	c.memory.all.Release(c.cfg.Memory)
	return c.pace == nil || c.pace.flying == 0
}
