package agentv1

import (
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// HealthReportV1 is a runner's account of itself (09§96), by itself or as the answer to a ProbeRequest.
type HealthReportV1 struct {
	Peer   protocol.PeerV1
	Status HealthStatusV1
	Checks []HealthResultV1 `postcard:"max=32"`
}

// HealthResultV1 is what one check found.
type HealthResultV1 struct {
	Kind   HealthCheckV1
	Status HealthStatusV1
	Detail string `postcard:"max=256"`
}

// NewHealthReport returns the wire form.
func NewHealthReport(runner forge.RunnerID, session forge.AgentSessionID, h forge.Health) *HealthReportV1 {
	w := &HealthReportV1{Peer: protocol.NewPeer(runner, session), Status: newHealthStatus(h.Status)}
	for _, check := range h.Checks {
		kind := HealthCheckV1(healthChecks.Wire(check.Kind))
		w.Checks = append(w.Checks, HealthResultV1{kind, newHealthStatus(check.Status), check.Detail})
	}
	return w
}

func newHealthStatus(s forge.HealthStatus) HealthStatusV1 {
	return HealthStatusV1(healthStatuses.Wire(s))
}

// Tag implements protocol.Message.
func (*HealthReportV1) Tag() protocol.Tag {
	return protocol.Tag{Type: protocol.TypeHealthReport, Schema: 1}
}

// Speaker implements protocol.Speaker.
func (w *HealthReportV1) Speaker() protocol.PeerV1 { return w.Peer }

// Validate implements protocol.Message.
func (w *HealthReportV1) Validate() error {
	var c protocol.Check
	c.In("peer", w.Peer.Validate())
	c.In("health", w.Health().Validate())
	return c.Err()
}

// Health returns the domain value, which is valid if w is.
func (w *HealthReportV1) Health() forge.Health {
	h := forge.Health{Status: healthStatuses.Or(uint8(w.Status), 0)}
	for _, check := range w.Checks {
		h.Checks = append(h.Checks, forge.HealthCheck{
			Kind: healthChecks.Or(uint8(check.Kind), 0), Status: healthStatuses.Or(uint8(check.Status), 0), Detail: check.Detail,
		})
	}
	return h
}
