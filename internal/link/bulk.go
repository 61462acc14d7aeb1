package link

import (
	"errors"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// Frames reads the frames of a stream other than the control stream. It belongs to one reader.
type Frames struct {
	link   *Link
	kind   protocol.StreamKind
	r      transport.ReceiveStream
	s      transport.SendStream
	frames *protocol.FrameReader
}

// Frames returns a reader of the frames of a stream of a kind that was opened or accepted on this link. s is nil where
// there is one direction only.
func (l *Link) Frames(kind protocol.StreamKind, r transport.ReceiveStream, s transport.SendStream) *Frames {
	return &Frames{link: l, kind: kind, r: r, s: s, frames: protocol.NewFrameReader(r)}
}

// Next returns the next message of the stream, with its envelope. It returns io.EOF at the end of the stream. A violation
// has reset the stream, or closed the connection, when it is returned.
func (f *Frames) Next() (protocol.EnvelopeV1, protocol.Message, error) {
	env, m, err := f.next()
	var v *protocol.Violation
	if errors.As(err, &v) {
		v = v.On(f.kind)
		f.violated(v)
		return env, nil, v
	}
	return env, m, err
}

func (f *Frames) next() (protocol.EnvelopeV1, protocol.Message, error) {
	header, err := f.frames.Next()
	if err != nil {
		return protocol.EnvelopeV1{}, nil, err
	}
	if err := f.link.admitOn(f.kind, header.Tag); err != nil {
		return protocol.EnvelopeV1{}, nil, err
	}
	body, err := f.frames.Body()
	if err != nil {
		return protocol.EnvelopeV1{}, nil, err
	}
	if f.kind == protocol.StreamSecret {
		defer f.frames.Wipe()
	}
	return f.link.openFrame(header, body)
}

// violated ends what the violation costs.
func (f *Frames) violated(v *protocol.Violation) {
	if v.Severity() != protocol.SeverityStream {
		f.link.violated(v)
		return
	}
	if f.link.ctx.Err() != nil {
		return
	}
	f.link.cfg.Observer.Violation(f.link, v)
	f.link.log("stream reset for a violation", v)
	reset(f.r, f.s, v.Reset())
}
