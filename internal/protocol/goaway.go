package protocol

import (
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of GoAway.
const (
	MaxEndpoints   = 8
	MaxEndpoint    = 255
	MaxGoAwayDelay = 24 * time.Hour
)

// GoAwayV1 announces the end of a connection (09§226): reconnect not before After, then within Spread, to one of
// Endpoints or, where none is named, to any that is configured.
type GoAwayV1 struct {
	After     uint64   // nanoseconds
	Spread    uint64   // nanoseconds
	Endpoints []string `postcard:"max=8,elem=255"`
}

// NewGoAway returns the wire form.
func NewGoAway(m *forge.GoAway) *GoAwayV1 {
	return &GoAwayV1{After: Nanos(m.After), Spread: Nanos(m.Spread), Endpoints: slices.Clone(m.Endpoints)}
}

// Tag implements Message.
func (*GoAwayV1) Tag() Tag { return Tag{TypeGoAway, 1} }

// Validate implements Message.
func (w *GoAwayV1) Validate() error {
	var c Check
	c.That(w.After <= uint64(MaxGoAwayDelay), "after", "is out of range")
	c.That(w.Spread <= uint64(MaxGoAwayDelay), "spread", "is out of range")
	c.Count("endpoints", len(w.Endpoints), 0, MaxEndpoints)
	for _, e := range w.Endpoints {
		c.That(e != "", "endpoints", "hold an empty one")
		c.Line("endpoints", e, MaxEndpoint)
	}
	return c.Err()
}

// Domain implements Domain.
func (w *GoAwayV1) Domain() (forge.Message, error) {
	if err := w.Validate(); err != nil {
		return nil, err
	}
	return &forge.GoAway{After: Duration(w.After), Spread: Duration(w.Spread), Endpoints: w.Endpoints}, nil
}
