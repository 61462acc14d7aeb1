package protocol

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Terms is what a peer can agree to.
type Terms struct {
	Versions Ranges
	Features FeatureSet
}

// OwnTerms is what this build can agree to.
func OwnTerms() Terms { return Terms{Versions: Supported(), Features: Features()} }

// Validate checks both parts.
func (t Terms) Validate() error {
	if err := t.Versions.Validate(); err != nil {
		return err
	}
	return t.Features.Validate()
}

// Selection is what was agreed for one connection. Nothing outside it may be sent.
type Selection struct {
	Version  Version
	Features FeatureSet
}

// Negotiate chooses the highest version that both peers speak and the features that both know (09§25, 09§247). An
// unknown feature and a higher minor are no reason to fail. The error is a *Mismatch.
func Negotiate(server, agent Terms) (Selection, error) {
	for i := len(server.Versions) - 1; i >= 0; i-- {
		ours := server.Versions[i]
		theirs, common := agent.Versions.major(ours.Major)
		minor := min(ours.MaxMinor, theirs.MaxMinor)
		if common && minor >= ours.MinMinor && minor >= theirs.MinMinor {
			return Selection{
				Version:  Version{ours.Major, minor},
				Features: server.Features.Intersect(agent.Features),
			}, nil
		}
	}
	return Selection{}, &Mismatch{Server: server.Versions, Agent: agent.Versions}
}

// Check reports whether an answer to Hello is one that these terms allow: a daemon may not choose what was not offered,
// nor more than it says it speaks (09§274).
func (s Selection) Check(own, peer Terms) error {
	var c Check
	c.That(own.Versions.Contains(s.Version) && peer.Versions.Contains(s.Version), "version", "was not offered by both")
	for _, f := range s.Features {
		c.That(own.Features.Has(f), "features", "hold one that was not offered")
	}
	return c.Err()
}

// Mismatch says that two peers have no version in common. Its text is what an operator needs (09§254).
type Mismatch struct{ Server, Agent Ranges }

func (m *Mismatch) Error() string {
	server, agent := m.Server.Majors(), m.Agent.Majors()
	if m.Reason() != forge.CloseVersionMismatch {
		server, agent = m.Server.String(), m.Agent.String() // the majors meet, the minors do not
	}
	return fmt.Sprintf("server supports %s, agent supports %s", server, agent)
}

// Reason is why the connection is closed: no major in common, or else an agent too old (09§253) or too new (09§252)
// within the newest major that both speak.
func (m *Mismatch) Reason() forge.CloseReason {
	for i := len(m.Server) - 1; i >= 0; i-- {
		ours := m.Server[i]
		theirs, common := m.Agent.major(ours.Major)
		switch {
		case common && theirs.MaxMinor < ours.MinMinor:
			return forge.CloseTooOld
		case common:
			return forge.CloseTooNew
		}
	}
	return forge.CloseVersionMismatch
}
