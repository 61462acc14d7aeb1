package remote

import "sync/atomic"

// Figures count what one half has moved since it was made. They are for people.
type Figures struct {
	Objects  uint64 // that went whole, in either direction
	Sent     uint64 // bytes of objects
	Received uint64
	WireSent uint64 // the same as they were encoded
	WireGot  uint64
	Resets   uint64 // streams that did not end well
}

type counters struct {
	objects, sent, received, wireSent, wireGot, resets atomic.Uint64
}

func (c *counters) figures() Figures {
	return Figures{
		Objects: c.objects.Load(), Sent: c.sent.Load(), Received: c.received.Load(),
		WireSent: c.wireSent.Load(), WireGot: c.wireGot.Load(), Resets: c.resets.Load(),
	}
}

// A Meter shows the figures of a half that may be made later than whoever shows them; until then all are zero. The zero value is
// ready, and any goroutine may use it.
type Meter struct {
	of atomic.Pointer[func() Figures]
}

// Watch names the half: its method Figures.
func (m *Meter) Watch(figures func() Figures) { m.of.Store(&figures) }

// Figures returns those of the half that is watched.
func (m *Meter) Figures() Figures {
	if of := m.of.Load(); of != nil {
		return (*of)()
	}
	return Figures{}
}
