package lifecycle

import (
	"fmt"
	"strings"
)

// Mermaid draws the table as a state diagram. It starts where the table's first state is, the one with the lowest
// number, and ends in each state that nothing leaves.
func (t *Table[S]) Mermaid() string {
	var b strings.Builder
	b.WriteString("stateDiagram-v2\n")
	fmt.Fprintf(&b, "    [*] --> %v\n", t.first())
	for _, e := range t.edges {
		fmt.Fprintf(&b, "    %v --> %v: %s\n", e.From, e.To, e.Event)
	}
	for _, s := range t.ends() {
		fmt.Fprintf(&b, "    %v --> [*]\n", s)
	}
	return b.String()
}

// first is the state in which every machine of this kind begins.
func (t *Table[S]) first() S {
	first := t.edges[0].From
	for _, e := range t.edges {
		first = min(first, e.From)
	}
	return first
}

// ends lists the states that nothing leaves, in the order of the table.
func (t *Table[S]) ends() []S {
	left, listed := map[S]bool{}, map[S]bool{}
	for _, e := range t.edges {
		left[e.From] = true
	}
	var ends []S
	for _, e := range t.edges {
		if !left[e.To] && !listed[e.To] {
			listed[e.To] = true
			ends = append(ends, e.To)
		}
	}
	return ends
}
