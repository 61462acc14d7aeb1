package protocol

import "github.com/forgeyard/forgeyard/internal/forge"

// MaxSoftware bounds the name and version of a program in bytes.
const MaxSoftware = 128

// HelloV1 opens the control stream (09§58). It can be read by every daemon there will ever be: its schema never changes.
type HelloV1 struct {
	Role     Role
	Versions Ranges     `postcard:"max=8"`
	Features FeatureSet `postcard:"max=64"`
	Session  *[16]byte  // of an agent process that registers again
	Software string     `postcard:"max=128"` // for people: forgeyard-agent 0.1.0 linux/amd64
}

// Tag implements Message.
func (*HelloV1) Tag() Tag { return Tag{TypeHello, 1} }

// Terms returns what the peer can agree to.
func (w *HelloV1) Terms() Terms { return Terms{Versions: w.Versions, Features: w.Features} }

// Validate implements Message. An unknown role refuses the message; unknown features do not.
func (w *HelloV1) Validate() error {
	var c Check
	c.That(w.Role.Valid(), "role", "is not known")
	c.In("terms", w.Terms().Validate())
	if w.Session != nil {
		c.ID("session", *w.Session)
	}
	c.Line("software", w.Software, MaxSoftware)
	return c.Err()
}

// SelectionV1 is what a daemon chose.
type SelectionV1 struct {
	Version  Version
	Features FeatureSet `postcard:"max=64"`
}

// HelloAckV1 answers Hello. Without a selection there is no common version: Versions then says what the daemon has, and
// the connection is closed (09§252, 09§253). Its schema never changes.
type HelloAckV1 struct {
	Versions Ranges `postcard:"max=8"` // all that the daemon speaks
	Selected *SelectionV1
	Software string `postcard:"max=128"`
	Time     int64  // milliseconds since 1970 on the daemon's clock, for diagnostics (09§147)
}

// NewHelloAck answers a Hello under the daemon's terms. The second result is the reason to close, if there is one.
func NewHelloAck(own Terms, hello *HelloV1, software string, nowMs int64) (*HelloAckV1, *Mismatch) {
	ack := &HelloAckV1{Versions: own.Versions, Software: software, Time: nowMs}
	selection, err := Negotiate(own, hello.Terms())
	if err != nil {
		return ack, &Mismatch{Server: own.Versions, Agent: hello.Versions}
	}
	ack.Selected = &SelectionV1{Version: selection.Version, Features: selection.Features}
	return ack, nil
}

// Accept returns the selection as the agent that sent own takes it. The error is a *Mismatch where the daemon refused,
// and a *Violation where it chose what was not offered.
func (w *HelloAckV1) Accept(own Terms) (Selection, error) {
	if w.Selected == nil {
		return Selection{}, &Mismatch{Server: w.Versions, Agent: own.Versions}
	}
	s := Selection{Version: w.Selected.Version, Features: w.Selected.Features}
	if err := s.Check(own, Terms{Versions: w.Versions}); err != nil {
		return Selection{}, &Violation{Fault: FaultVersion, Tag: w.Tag(), Err: err}
	}
	return s, nil
}

// Tag implements Message.
func (*HelloAckV1) Tag() Tag { return Tag{TypeHelloAck, 1} }

// Validate implements Message.
func (w *HelloAckV1) Validate() error {
	var c Check
	c.In("versions", w.Versions.Validate())
	if w.Selected != nil {
		c.In("selected", w.Selected.Features.Validate())
		c.That(w.Versions.Contains(w.Selected.Version), "selected", "is not one of the daemon's versions")
	}
	c.Line("software", w.Software, MaxSoftware)
	c.Wall("time", w.Time)
	return c.Err()
}

// SessionID returns the session that a Hello names, or zero.
func (w *HelloV1) SessionID() forge.AgentSessionID {
	if w.Session == nil {
		return forge.AgentSessionID{}
	}
	return forge.MakeID[forge.AgentSessionID](*w.Session)
}
