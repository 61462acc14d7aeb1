package protocol

import (
	"errors"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Gate is what is known of a connection when a frame or a stream arrives. It decides whether that may come at all: by
// role, direction, kind of stream, state and features. Whether the sender has authority is decided elsewhere.
type Gate struct {
	ALPN     ALPN
	Role     Role // of the daemon's peer; 0 until its Hello was read
	State    forge.ConnectionState
	Features FeatureSet
}

// What the gate says for our log.
var (
	errFamily    = errors.New("its family is not for this role")
	errRoad      = errors.New("its family does not travel on this connection")
	errDirection = errors.New("it goes the other way")
	errStream    = errors.New("it belongs on another kind of stream")
	errState     = errors.New("not in this state of the connection")
	errFeature   = errors.New("its feature was not negotiated")
)

// Frame decides on a frame that arrived on a stream of a kind, to being who has received it. It needs the header alone.
// The error is a *Violation.
func (g Gate) Frame(to Direction, on StreamKind, tag Tag) error {
	refuse := func(f Fault, why error) error { return &Violation{Fault: f, Stream: on, Tag: tag, Err: why} }
	info, known := LookupTag(tag)
	switch family := FamilyOf(tag.Type); {
	case family != 0 && !g.speaks(family):
		return refuse(FaultRole, errFamily)
	case !known:
		return nil // decoding the body tells which request it was; see wire.Decode
	case !g.ALPN.Carries(family):
		return refuse(FaultRole, errRoad)
	case info.To&to == 0:
		return refuse(FaultRole, errDirection)
	case !info.Streams.Has(on):
		return refuse(FaultState, errStream)
	case !info.When.Has(g.State):
		return refuse(FaultState, errState)
	case !g.Features.Has(info.Feature):
		return refuse(FaultState, errFeature)
	}
	return nil
}

// Stream decides on a stream that the peer of the daemon opened. The error is a *Violation.
func (g Gate) Stream(kind StreamKind) error {
	info, known := kind.Info()
	switch {
	case !known || info.Schema == 0:
		return &Violation{Fault: FaultHeader, Stream: kind}
	case !g.speaks(info.Family) || !g.ALPN.Carries(info.Family):
		return &Violation{Fault: FaultRole, Stream: kind, Err: errFamily}
	case !info.When.Has(g.State):
		return &Violation{Fault: FaultState, Stream: kind, Err: errState}
	}
	return nil
}

// speaks reports whether the peer may use a family. Before its Hello it has no role and may only say that.
func (g Gate) speaks(f Family) bool {
	if g.Role == 0 {
		return f == FamilySession
	}
	return g.Role.Speaks(f)
}
