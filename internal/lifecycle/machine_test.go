package lifecycle_test

import (
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/lifecycle"
)

// machine is a table with its types erased, so that one test can hold all six. States are positions in names.
type machine struct {
	name   string
	file   string // of its source
	names  []string
	events []lifecycle.Event
	next   func(state int, event lifecycle.Event) (int, error)
	can    func(state int, event lifecycle.Event) bool
	ended  []bool // what the domain calls over
	draw   func() string
}

// machines lists all six. What is over is said by the domain, not by the table.
func machines() []machine {
	return []machine{
		erase(lifecycle.Run, "work.go", forge.RunState.Ended),
		erase(lifecycle.Job, "work.go", forge.JobState.Ended),
		erase(lifecycle.Attempt, "work.go", forge.AttemptState.Ended),
		erase(lifecycle.Lease, "work.go", forge.LeaseState.Ended),
		erase(lifecycle.Agent, "peers.go", func(s forge.AgentState) bool { return s == forge.AgentOffline }),
		erase(lifecycle.Connection, "peers.go", func(s forge.ConnectionState) bool { return s == forge.ConnClosed }),
	}
}

// erase lists every state that the domain names, whether or not the table does.
func erase[S lifecycle.State](t *lifecycle.Table[S], file string, ended func(S) bool) machine {
	m := machine{name: t.Name(), file: file, draw: t.Mermaid}
	for s := S(1); !strings.HasPrefix(s.String(), "invalid"); s++ {
		m.names = append(m.names, s.String())
		m.ended = append(m.ended, ended(s))
	}
	for _, e := range t.Edges() {
		if !slices.Contains(m.events, e.Event) {
			m.events = append(m.events, e.Event)
		}
	}
	m.next = func(state int, event lifecycle.Event) (int, error) {
		to, err := t.Next(S(state+1), event)
		return int(to) - 1, err
	}
	m.can = func(state int, event lifecycle.Event) bool { return t.Can(S(state+1), event) }
	return m
}

// reach lists the states that can follow, at any distance, from those given.
func (m *machine) reach(from ...int) []int {
	seen := slices.Clone(from)
	for i := 0; i < len(seen); i++ {
		for _, e := range m.events {
			if to, err := m.next(seen[i], e); err == nil && !slices.Contains(seen, to) {
				seen = append(seen, to)
			}
		}
	}
	return seen
}
