package protocol

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/postcard"
)

// Tag names a wire struct: the type and the schema of its payload.
type Tag struct {
	Type   TypeID
	Schema uint8
}

func (t Tag) String() string { return fmt.Sprintf("%v, schema %d", t.Type, t.Schema) }

// Message is the payload of a frame: a pointer to one of the wire structs of this package or of a family.
type Message interface {
	// Tag says which wire struct it is.
	Tag() Tag
	// Validate checks everything that can be checked without knowing anything else: ids that are there, numbers in
	// range, what must agree within the message. It is called before a message is sent and after it is decoded.
	Validate() error
}

// Domain is a message that stands for a domain value.
type Domain interface {
	Message
	// Domain returns that value, which is as valid as Validate can tell.
	Domain() (forge.Message, error)
}

// Speaker is a message that says whose it is.
type Speaker interface {
	Message
	// Speaker returns the runner and the session that the message claims to come from or to be meant for.
	Speaker() PeerV1
}

// CheckSpeaker refuses a message in the name of anybody but the authenticated runner with its registered session
// (09§261). A zero session is one that is not registered yet. Messages that name nobody pass.
func CheckSpeaker(m Message, runner forge.RunnerID, session forge.AgentSessionID) error {
	s, ok := m.(Speaker)
	if !ok {
		return nil
	}
	peer := s.Speaker()
	if peer.Runner != runner.ULID || (!session.IsZero() && peer.Session != session.ULID) {
		return &Violation{Fault: FaultRole, Tag: m.Tag(), Err: errForeign}
	}
	return nil
}

var errForeign = errors.New("speaks for another runner or session")

// AppendFrame appends a framed message to dst: header, envelope, payload. It refuses what a peer would refuse. On an
// error it returns dst as it was.
func AppendFrame(dst []byte, env EnvelopeV1, m Message) ([]byte, error) {
	info, ok := LookupTag(m.Tag())
	if !ok {
		return dst, fmt.Errorf("encode frame: %v is not registered", m.Tag())
	}
	if err := errors.Join(env.Validate(), m.Validate()); err != nil {
		return dst, fmt.Errorf("encode %v: %w", m.Tag(), err)
	}
	out, err := postcard.Append(append(dst, make([]byte, HeaderBytes)...), env)
	if err != nil {
		return dst, fmt.Errorf("encode envelope of %v: %w", m.Tag(), err)
	}
	if out, err = info.options().Append(out, m); err != nil {
		return dst, fmt.Errorf("encode %v: %w", m.Tag(), err)
	}
	length := len(out) - len(dst) - HeaderBytes
	if length > int(info.Max) {
		return dst, fmt.Errorf("encode %v: %d bytes, at most %d", m.Tag(), length, info.Max)
	}
	Header{Length: uint32(length), Tag: m.Tag()}.put(out[len(dst):])
	return out, nil
}

// Open reads the envelope of a body and returns it with the payload, which is a part of body.
func Open(tag Tag, body []byte) (EnvelopeV1, []byte, error) {
	var env EnvelopeV1
	payload, err := postcard.Options{MaxDepth: MaxDepth, MaxAlloc: MaxEnvelope}.Take(body, &env)
	if err == nil {
		err = env.Validate()
	}
	if err != nil {
		return EnvelopeV1{}, nil, &Violation{Fault: FaultMalformed, Tag: tag, Err: err}
	}
	return env, payload, nil
}

// Unmarshal decodes the payload of a registered type into m and does not validate it: whoever converts m to a domain
// value validates on the way. It takes the bytes that AppendFrame writes and no others.
func Unmarshal(payload []byte, m Message) error {
	info, ok := LookupTag(m.Tag())
	if !ok {
		return &Violation{Fault: FaultUnsupported, Tag: m.Tag()}
	}
	if err := info.options().Unmarshal(payload, m); err != nil {
		return &Violation{Fault: FaultMalformed, Tag: m.Tag(), Err: err}
	}
	return nil
}

// Decode is Unmarshal and Validate.
func Decode(payload []byte, m Message) error {
	if err := Unmarshal(payload, m); err != nil {
		return err
	}
	if err := m.Validate(); err != nil {
		return &Violation{Fault: FaultMalformed, Tag: m.Tag(), Err: err}
	}
	return nil
}

// options bounds the decoding of one type.
func (i Info) options() postcard.Options {
	return postcard.Options{MaxDepth: MaxDepth, MaxAlloc: expansion * int(i.Max)}
}

// Fingerprint describes the wire struct of m, field for field with types and limits. The digest of it freezes a
// released message.
func Fingerprint(m Message) (string, error) { return postcard.Schema(reflect.TypeOf(m).Elem()) }

// HeadFingerprint does so for the header of a stream.
func HeadFingerprint(h StreamHead) (string, error) { return postcard.Schema(reflect.TypeOf(h).Elem()) }

// EnvelopeFingerprint does so for the envelope.
func EnvelopeFingerprint() (string, error) { return postcard.Schema(reflect.TypeFor[EnvelopeV1]()) }
