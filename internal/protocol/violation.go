package protocol

import (
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Severity says what a violation ends (09§139).
type Severity uint8

// The severities.
const (
	SeverityStream   Severity = 1 // the stream is reset, the connection goes on
	SeveritySession  Severity = 2 // the connection is closed
	SeveritySecurity Severity = 3 // the connection is closed and an audit event is written
)

var severityNames = Enum[string]{1: "stream", 2: "session", 3: "security"}

func (s Severity) String() string { return severityNames.Name(uint8(s)) }

// Fault is what a peer did.
type Fault uint8

// The faults.
const (
	FaultMalformed   Fault = 1 // bytes that are no encoding, or values that Validate refuses
	FaultTooLarge    Fault = 2 // a frame longer than its type may be
	FaultHeader      Fault = 3 // a stream header that is wrong
	FaultUnsupported Fault = 4 // a type or schema that was not negotiated
	FaultState       Fault = 5 // something that may not come now, here, or without a feature
	FaultRole        Fault = 6 // something that this peer may never say
	FaultVersion     Fault = 7 // another version than the negotiated one
	FaultRate        Fault = 8 // more than the limits of a connection allow, or too slow to take what it is sent
	FaultLate        Fault = 9 // something that must come within a time did not
)

var faultNames = Enum[string]{
	1: "malformed", 2: "too large", 3: "bad stream header", 4: "unsupported", 5: "not allowed now", 6: "not allowed for this peer",
	7: "not the negotiated version", 8: "over a limit", 9: "too late",
}

func (f Fault) String() string { return faultNames.Name(uint8(f)) }

// Violation is a fault of a peer. It never holds anything of what the peer sent but numbers.
type Violation struct {
	Fault  Fault
	Stream StreamKind      // 0 is the control stream
	Tag    Tag             // of the frame, if it was one
	Re     forge.MessageID // of the message, where it is known and an Error may be sent
	Err    error           // for our log; nil where the fault says it all
}

// On returns the violation as one of a stream of a kind.
func (v *Violation) On(kind StreamKind) *Violation {
	placed := *v
	placed.Stream = kind
	return &placed
}

func (v *Violation) Error() string {
	var s strings.Builder
	s.WriteString("protocol: " + v.Fault.String())
	if v.Tag != (Tag{}) {
		s.WriteString(": " + v.Tag.String())
	}
	if v.Stream != 0 {
		s.WriteString(": on a " + v.Stream.String() + " stream")
	}
	if v.Err != nil {
		s.WriteString(": " + v.Err.Error())
	}
	return s.String()
}

// Unwrap returns the cause.
func (v *Violation) Unwrap() error { return v.Err }

// Severity says what has to end. Bad bytes on any stream but the control stream cost that stream only (09§140).
func (v *Violation) Severity() Severity {
	switch v.Fault {
	case FaultRole:
		return SeveritySecurity
	case FaultHeader:
		return SeverityStream
	case FaultMalformed, FaultTooLarge, FaultRate, FaultLate:
		if v.Stream > StreamControl {
			return SeverityStream
		}
	}
	return SeveritySession
}

// Reset is the code with which the stream is reset, of a violation with SeverityStream.
func (v *Violation) Reset() ResetCode {
	switch v.Fault {
	case FaultTooLarge, FaultRate:
		return ResetLimit
	case FaultLate:
		return ResetTimeout
	default:
		return ResetMalformed
	}
}

// Reason is why the connection is closed, of a violation with another severity.
func (v *Violation) Reason() forge.CloseReason {
	switch v.Fault {
	case FaultMalformed:
		return forge.CloseMalformed
	case FaultTooLarge:
		return forge.CloseFrameTooLarge
	case FaultUnsupported:
		return forge.CloseUnsupported
	case FaultState:
		return forge.CloseBadState
	case FaultRole:
		return forge.CloseRoleViolation
	case FaultRate:
		return forge.CloseRate
	case FaultLate:
		return forge.CloseRegisterTimeout
	default:
		return forge.CloseProtocol
	}
}
