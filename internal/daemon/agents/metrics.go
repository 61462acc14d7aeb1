package agents

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Metrics counts what happens on the edge (09§207, 09§208). A nil one counts nothing. No label names a runner or an id.
type Metrics struct {
	active, streamsActive, queue *telemetry.Gauge
	total, errors, fenced        *telemetry.Counter
	failures, closes             *telemetry.Counter
	messages, bytes, opens       *telemetry.Counter
	logBytes, audits             *telemetry.Counter
	handshakes                   *telemetry.Histogram
	moved                        remote.Meter
}

// NewMetrics makes the metrics in a registry, once for a process.
func NewMetrics(m *telemetry.Metrics) *Metrics {
	var families, faults, reasons, kinds []string
	for f := protocol.FamilySession; f <= protocol.FamilyDevice; f++ {
		families = append(families, f.String())
	}
	for f := protocol.FaultMalformed; !strings.HasPrefix(f.String(), "unknown"); f++ {
		faults = append(faults, f.String())
	}
	for r := forge.CloseNormal; r.Valid(); r++ {
		reasons = append(reasons, r.String())
	}
	for _, k := range protocol.StreamKinds() {
		kinds = append(kinds, k.Name)
	}
	direction := telemetry.Label{Name: "direction", Values: []string{"in", "out"}}
	family := telemetry.Label{Name: "family", Values: families}
	reason := telemetry.Label{Name: "reason", Values: reasons}
	all := &Metrics{
		active:        m.Gauge("forgeyard_quic_connections_active", "Connections of agents that stand."),
		total:         m.Counter("forgeyard_quic_connections_total", "Connections of agents that were taken."),
		streamsActive: m.Gauge("forgeyard_transport_streams_active", "Log streams that are open."),
		queue:         m.Gauge("forgeyard_transport_control_queue_depth", "Transactions that wait for their turn."),
		errors: m.Counter("forgeyard_transport_protocol_errors_total", "Violations of the protocol by peers.",
			telemetry.Label{Name: "fault", Values: faults},
			telemetry.Label{Name: "severity", Values: []string{"stream", "session", "security"}}),
		fenced:   m.Counter("forgeyard_transport_session_fenced_total", "Connections that lost their voice to a newer one."),
		failures: m.Counter("forgeyard_transport_registration_failures_total", "Connections that were never registered.", reason),
		closes:   m.Counter("forgeyard_transport_closes_total", "Registered connections that were closed here.", reason),
		messages: m.Counter("forgeyard_transport_messages_total", "Frames of control streams.", direction, family),
		bytes:    m.Counter("forgeyard_transport_control_bytes_total", "Bytes of control streams.", direction),
		opens:    m.Counter("forgeyard_transport_streams_total", "Streams that agents have opened.", telemetry.Label{Name: "kind", Values: kinds}),
		logBytes: m.Counter("forgeyard_transport_log_bytes_total", "Bytes of logs that were stored."),
		audits: m.Counter("forgeyard_transport_audit_events_total", "Audit events that agents have caused.",
			telemetry.Label{Name: "kind", Values: append(slices.Sorted(maps.Values(auditNames)), auditViolation)}),
		handshakes: m.Histogram("forgeyard_transport_handshake_seconds", "From a connection to its common version.",
			[]float64{.001, .005, .02, .1, .5, 2, 10}),
	}
	objects := func(name, help string, of func(remote.Figures) uint64) {
		m.CounterFunc(name, help, func() float64 { return float64(of(all.moved.Figures())) })
	}
	objects("forgeyard_transport_objects_total", "Objects that went whole between the daemon and agents.",
		func(f remote.Figures) uint64 { return f.Objects })
	objects("forgeyard_transport_object_sent_bytes_total", "Bytes of objects that were sent to agents, also those that a broken connection has lost.",
		func(f remote.Figures) uint64 { return f.Sent })
	objects("forgeyard_transport_object_received_bytes_total", "Bytes of objects that came from agents.",
		func(f remote.Figures) uint64 { return f.Received })
	return all
}

// moves names who counts the objects that agents and daemon exchange.
func (m *Metrics) moves(figures func() remote.Figures) {
	if m != nil {
		m.moved.Watch(figures)
	}
}

func (m *Metrics) conns(d float64) {
	if m == nil {
		return
	}
	m.active.Add(d)
	if d > 0 {
		m.total.Inc()
	}
}

func (m *Metrics) streams(d float64) {
	if m != nil {
		m.streamsActive.Add(d)
	}
}

func (m *Metrics) waiting(n int) {
	if m != nil {
		m.queue.Set(float64(n))
	}
}

func (m *Metrics) refused(reason forge.CloseReason) {
	if m != nil {
		m.failures.Inc(reason.String())
	}
}

func (m *Metrics) closed(reason forge.CloseReason, registered bool) {
	if m == nil {
		return
	}
	if !registered {
		m.refused(reason)
		return
	}
	m.closes.Inc(reason.String())
	if reason == forge.CloseFenced || reason == forge.CloseSessionSuperseded {
		m.fenced.Inc()
	}
}

func (m *Metrics) handshake(took time.Duration) {
	if m != nil {
		m.handshakes.Observe(took.Seconds())
	}
}

func (m *Metrics) violation(v *protocol.Violation) {
	if m != nil {
		m.errors.Inc(v.Fault.String(), v.Severity().String())
	}
}

func (m *Metrics) message(direction string, tag protocol.Tag, bytes int) {
	if m == nil {
		return
	}
	m.messages.Inc(direction, protocol.FamilyOf(tag.Type).String())
	m.bytes.Add(uint64(bytes), direction)
}

func (m *Metrics) opened(kind protocol.StreamKind) {
	if m != nil {
		m.opens.Inc(kind.String())
	}
}

func (m *Metrics) logged(bytes int) {
	if m != nil {
		m.logBytes.Add(uint64(bytes))
	}
}

func (m *Metrics) audit(kind string) {
	if m != nil {
		m.audits.Inc(kind)
	}
}
