package protocol

import "github.com/forgeyard/forgeyard/internal/forge"

// EnvelopeV1 stands before every payload (09§30).
type EnvelopeV1 struct {
	Protocol      Version   // as negotiated; in Hello and HelloAck the sender's highest
	MessageID     [16]byte  // stable when the same message is sent again
	CorrelationID *[16]byte // the id of the request that this answers
	SentAt        int64     // milliseconds since 1970 on the sender's wall clock, for diagnostics only (09§146)
	Trace         *TraceV1
}

// TraceV1 carries a W3C trace context over (09§211).
type TraceV1 struct {
	TraceID [16]byte
	SpanID  [8]byte
}

// NewEnvelope returns the envelope of a domain frame.
func NewEnvelope(v Version, f forge.Frame, sentAtMs int64) EnvelopeV1 {
	env := EnvelopeV1{Protocol: v, MessageID: f.ID.ULID, SentAt: sentAtMs}
	if !f.Re.IsZero() {
		re := [16]byte(f.Re.ULID)
		env.CorrelationID = &re
	}
	return env
}

// ID returns the id of the message.
func (e EnvelopeV1) ID() forge.MessageID { return forge.MakeID[forge.MessageID](e.MessageID) }

// Re returns the id of the request that the message answers, or zero.
func (e EnvelopeV1) Re() forge.MessageID {
	if e.CorrelationID == nil {
		return forge.MessageID{}
	}
	return forge.MakeID[forge.MessageID](*e.CorrelationID)
}

// Validate checks that ids which are there are not zero, and that the time is one.
func (e EnvelopeV1) Validate() error {
	var c Check
	c.ID("message_id", e.MessageID)
	if e.CorrelationID != nil {
		c.ID("correlation_id", *e.CorrelationID)
	}
	c.Wall("sent_at", e.SentAt)
	if e.Trace != nil {
		c.ID("trace.trace_id", e.Trace.TraceID)
		c.That(e.Trace.SpanID != [8]byte{}, "trace.span_id", "is missing")
	}
	return c.Err()
}

// CheckVersion refuses a message in another version than the negotiated one. Hello and HelloAck come before there is one.
func (e EnvelopeV1) CheckVersion(tag Tag, negotiated Version) error {
	if tag.Type == TypeHello || tag.Type == TypeHelloAck || e.Protocol == negotiated {
		return nil
	}
	return &Violation{Fault: FaultVersion, Tag: tag, Re: e.ID()}
}
