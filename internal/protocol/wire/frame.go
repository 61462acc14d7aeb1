package wire

import (
	"errors"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// EncodeFrame appends a domain frame to dst as bytes: header, envelope, payload. It refuses what the peer would refuse.
// On an error it returns dst as it was.
func EncodeFrame(dst []byte, f forge.Frame, version protocol.Version, sentAtMs int64) ([]byte, error) {
	w := fromDomain(f.Body)
	if w == nil {
		return dst, noMessage(f.Body)
	}
	return protocol.AppendFrame(dst, protocol.NewEnvelope(version, f, sentAtMs), w)
}

// DecodeFrame returns the domain frame of a body. Errors are of type *protocol.Violation, with the message's id where it
// could be read. Whether the version is the negotiated one is checked by whoever knows it, with Decode.
func DecodeFrame(header protocol.Header, body []byte) (forge.Frame, error) {
	env, w, err := open(header, body)
	if err != nil {
		return forge.Frame{}, err
	}
	return ToFrame(env, w)
}

// ToFrame returns the domain frame of a wire struct and its envelope. Errors are of type *protocol.Violation.
func ToFrame(env protocol.EnvelopeV1, w protocol.Message) (forge.Frame, error) {
	m, err := ToDomain(w)
	if err != nil {
		return forge.Frame{}, about(err, env)
	}
	if c, ok := m.(*forge.Completion); ok && c.Message != env.ID() {
		return forge.Frame{}, about(&protocol.Violation{Fault: protocol.FaultMalformed, Tag: w.Tag(), Err: errTwoIDs}, env)
	}
	return forge.Frame{ID: env.ID(), Re: env.Re(), Body: m}, nil
}

var errTwoIDs = errors.New("the completion and its envelope have two ids")

// Decode returns the envelope and the validated wire struct of a body. Errors are of type *protocol.Violation.
func Decode(header protocol.Header, body []byte) (protocol.EnvelopeV1, protocol.Message, error) {
	env, w, err := open(header, body)
	if err != nil {
		return env, nil, err
	}
	if err := w.Validate(); err != nil {
		return env, nil, about(&protocol.Violation{Fault: protocol.FaultMalformed, Tag: header.Tag, Err: err}, env)
	}
	return env, w, nil
}

// open decodes without validating the payload. A tag that was not negotiated is found here, after the envelope, so that
// the answer can say which request it was.
func open(header protocol.Header, body []byte) (protocol.EnvelopeV1, protocol.Message, error) {
	env, payload, err := protocol.Open(header.Tag, body)
	if err != nil {
		return env, nil, err
	}
	w, ok := New(header.Tag)
	if !ok {
		return env, nil, about(&protocol.Violation{Fault: protocol.FaultUnsupported, Tag: header.Tag}, env)
	}
	if err := protocol.Unmarshal(payload, w); err != nil {
		return env, nil, about(err, env)
	}
	return env, w, nil
}

// about adds the id of the message to a violation.
func about(err error, env protocol.EnvelopeV1) error {
	var v *protocol.Violation
	if errors.As(err, &v) {
		v.Re = env.ID()
	}
	return err
}
