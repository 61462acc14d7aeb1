package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// ProbeRequestV1 asks for a HealthReport now (09§96).
type ProbeRequestV1 struct {
	Checks []HealthCheckV1 `postcard:"max=32"` // to run; none means all
}

// Tag implements protocol.Message.
func (*ProbeRequestV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeProbeRequest, Schema: 1}
}

// Validate implements protocol.Message.
func (w *ProbeRequestV1) Validate() error {
	var c protocol.Check
	for _, kind := range w.Checks {
		c.That(healthChecks.Known(uint8(kind)), "checks", "hold one that is not known")
	}
	return c.Err()
}

// Kinds returns the checks to run; none means all.
func (w *ProbeRequestV1) Kinds() []forge.HealthCheckKind {
	var kinds []forge.HealthCheckKind
	for _, kind := range w.Checks {
		kinds = append(kinds, healthChecks.Or(uint8(kind), 0))
	}
	return kinds
}
