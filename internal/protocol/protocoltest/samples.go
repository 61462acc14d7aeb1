package protocoltest

import (
	"strings"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
)

// Sample is a valid message.
type Sample struct {
	Name    string // smallest, typical, largest, or what is special about it
	About   string
	Message protocol.Message
}

// Samples returns the samples of a type: at least smallest, typical and largest. Each call makes new ones.
func Samples(id protocol.TypeID) []Sample {
	if build := builders[id]; build != nil {
		return build()
	}
	return nil
}

var builders = map[protocol.TypeID]func() []Sample{
	protocol.TypeHello:                hello,
	protocol.TypeHelloAck:             helloAck,
	protocol.TypeRegister:             register,
	protocol.TypeRegistrationAccepted: registrationAccepted,
	protocol.TypeRegistrationRejected: registrationRejected,
	protocol.TypeEnroll:               enroll,
	protocol.TypeEnrollAccepted:       enrollAccepted,
	protocol.TypeRenewCertificate:     renewCertificate,
	protocol.TypeCertificateIssued:    certificateIssued,
	protocol.TypeCapabilityUpdate:     capabilityUpdate,
	protocol.TypeResync:               resync,
	protocol.TypeResyncReply:          resyncReply,
	protocol.TypeRecoverAttempts:      recoverAttempts,
	protocol.TypeRecoveryDecisions:    recoveryDecisions,
	protocol.TypeLeaseOffer:           leaseOffer,
	protocol.TypeLeaseAccept:          leaseAccept,
	protocol.TypeLeaseReject:          leaseReject,
	protocol.TypeLeaseAcceptAck:       leaseAcceptAck,
	protocol.TypeCancel:               cancel,
	protocol.TypeCancelAck:            cancelAck,
	protocol.TypeHeartbeat:            heartbeat,
	protocol.TypeHeartbeatAck:         heartbeatAck,
	protocol.TypeHealthReport:         healthReport,
	protocol.TypeProbeRequest:         probeRequest,
	protocol.TypePhase:                phase,
	protocol.TypePhaseAck:             phaseAck,
	protocol.TypeCompletion:           completion,
	protocol.TypeCompletionAck:        completionAck,
	protocol.TypeLogFrame:             logFrame,
	protocol.TypeLogAck:               logAck,
	protocol.TypeLogResume:            logResume,
	protocol.TypeLogFinal:             logFinal,
	protocol.TypeLogFinalAck:          logFinalAck,
	protocol.TypeNeedObjects:          needObjects,
	protocol.TypeMissingObjects:       missingObjects,
	protocol.TypeCasHeader:            casHeader,
	protocol.TypeCasRangeState:        casRangeState,
	protocol.TypeCasResult:            casResult,
	protocol.TypeSecretRequest:        secretRequest,
	protocol.TypeSecretMaterial:       secretMaterial,
	protocol.TypeGoAway:               goAway,
	protocol.TypeError:                failure,
	protocol.TypeDrain:                drain,
	protocol.TypeResume:               resume,
	protocol.TypeRefreshCapabilities:  refreshCapabilities,
}

// three makes the samples that every type has.
func three(smallest, typical, largest protocol.Message, about string) []Sample {
	return []Sample{
		{"smallest", "every list and text empty, every number as small as it may be", smallest},
		{"typical", about, typical},
		{"largest", "every list and text at its limit, every number as large as it may be", largest},
	}
}

// Envelope returns the envelope under which a sample travels.
func (s Sample) Envelope() protocol.EnvelopeV1 {
	env := protocol.EnvelopeV1{Protocol: protocol.Version{Minor: 1}, MessageID: least}
	switch s.Name {
	case "smallest":
	case "largest":
		re := most
		env = protocol.EnvelopeV1{
			Protocol: protocol.Version{Major: 1<<16 - 1, Minor: 1<<16 - 1}, MessageID: most, CorrelationID: &re,
			SentAt: protocol.MaxWall, Trace: &protocol.TraceV1{TraceID: most, SpanID: [8]byte(most[:8])},
		}
	default:
		re := raw(0x51)
		env.MessageID, env.CorrelationID, env.SentAt = raw(0x50), &re, someTime
	}
	if c, ok := s.Message.(*agentv1.CompletionV1); ok {
		env.MessageID = c.Message // it is the id of the message
	}
	return env
}

// Frame returns the sample as it travels.
func (s Sample) Frame() ([]byte, error) { return protocol.AppendFrame(nil, s.Envelope(), s.Message) }

// What samples are made of.
const (
	most64         = 1<<64 - 1
	someTime int64 = 1_767_225_600_000 // 2026-01-01
	minute         = uint64(60_000_000_000)
	longest        = uint64(protocol.MaxDuration)
)

var (
	least    = [16]byte{15: 1}
	most     = [16]byte(filled(16, 0xff))
	leastD   = [32]byte{31: 1}
	mostD    = [32]byte(filled(32, 0xff))
	someD    = [32]byte(filled(32, 0xd1))
	otherD   = [32]byte(filled(32, 0xd2))
	leastRef = protocol.RefV1{Digest: leastD}
	someRef  = protocol.RefV1{Digest: someD, Bytes: 123_456}
	mostRef  = protocol.RefV1{Digest: mostD, Bytes: protocol.MaxObject}
)

// raw returns an id as they come: a time and then something random.
func raw(n byte) [16]byte {
	return [16]byte{0x01, 0x9b, 0x76, 0xda, 0x24, 0x00, 0x61, 0x7a, 0x5d, 0x3f, 0x0c, 0x8e, 0x42, 0x99, 0xb1, n}
}

func filled(n int, b byte) []byte {
	bytes := make([]byte, n)
	for i := range bytes {
		bytes[i] = b
	}
	return bytes
}

func text(n int) string { return strings.Repeat("x", n) }

// numbered returns a text of n bytes that differs for each i.
func numbered(n, i int) string {
	digits := []byte(text(n))
	for at := n - 1; i > 0; at-- {
		digits[at] = byte('0' + i%10)
		i /= 10
	}
	return string(digits)
}

// times repeats an item.
func times[T any](n int, item T) []T {
	items := make([]T, n)
	for i := range items {
		items[i] = item
	}
	return items
}

// each makes n items.
func each[T any](n int, item func(i int) T) []T {
	items := make([]T, n)
	for i := range items {
		items[i] = item(i + 1)
	}
	return items
}

// tuple returns a tuple of the size that a sample wants.
func tuple(id [16]byte, d [32]byte) protocol.ContextV1 {
	return protocol.ContextV1{
		Peer: protocol.PeerV1{Runner: id, Session: id},
		Work: protocol.WorkV1{Job: id, Attempt: id, Lease: id, Spec: d},
	}
}

var (
	leastPeer = protocol.PeerV1{Runner: least, Session: least}
	somePeer  = protocol.PeerV1{Runner: raw(0x10), Session: raw(0x11)}
	mostPeer  = protocol.PeerV1{Runner: most, Session: most}
	someWork  = protocol.WorkV1{Job: raw(0x20), Attempt: raw(0x21), Lease: raw(0x22), Spec: someD}
	mostWork  = tuple(most, mostD).Work

	leastContext = tuple(least, leastD)
	someContext  = protocol.ContextV1{Peer: somePeer, Work: someWork}
	mostContext  = tuple(most, mostD)
)
