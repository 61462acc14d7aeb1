// Package lifecycle holds the state machines of run, job, attempt, lease, agent and connection as tables.
//
// A table lists every legal (from, event, to). Next applies one event or returns a typed *IllegalTransition; no other
// code decides whether a state may change, and no state field is assigned from anything but Next's answer. The tables
// say what is possible, not who may do it: that is package authority.
//
// The golden file testdata/transitions.golden lists every (state, event) pair; docs/states/ has a picture of each table,
// drawn from it.
//
// Pure: no clock, no I/O, no goroutine.
package lifecycle

import "fmt"

// Event is something that happened to a machine. Events are named, not numbered: they are never stored.
type Event string

// Edge is one legal change.
type Edge[S State] struct {
	From  S
	Event Event
	To    S
}

// State is a numbered state that prints its name.
type State interface {
	~uint8
	fmt.Stringer
}

// Table is the set of legal changes of one machine. It is immutable after New and safe for concurrent use.
type Table[S State] struct {
	name  string
	edges []Edge[S]
	next  map[key[S]]S
}

type key[S State] struct {
	from  S
	event Event
}

// newTable builds a table. Two edges for one (state, event) are a bug in this package.
func newTable[S State](name string, edges ...Edge[S]) *Table[S] {
	t := &Table[S]{name: name, edges: edges, next: make(map[key[S]]S, len(edges))}
	for _, e := range edges {
		k := key[S]{e.From, e.Event}
		if _, twice := t.next[k]; twice {
			panic(fmt.Sprintf("lifecycle: %s has two edges for (%v, %s)", name, e.From, e.Event))
		}
		t.next[k] = e.To
	}
	return t
}

// Name is the machine's name.
func (t *Table[S]) Name() string { return t.name }

// Edges lists the legal changes in the order of the table. The caller must not change it.
func (t *Table[S]) Edges() []Edge[S] { return t.edges }

// Next returns the state after event, or an *IllegalTransition and the state unchanged.
func (t *Table[S]) Next(from S, event Event) (S, error) {
	to, ok := t.next[key[S]{from, event}]
	if !ok {
		return from, &IllegalTransition{Machine: t.name, From: from.String(), Event: event}
	}
	return to, nil
}

// Can reports whether event is legal in from.
func (t *Table[S]) Can(from S, event Event) bool {
	_, ok := t.next[key[S]{from, event}]
	return ok
}

// IllegalTransition says that an event cannot happen in a state.
type IllegalTransition struct {
	Machine string
	From    string
	Event   Event
}

func (e *IllegalTransition) Error() string {
	return fmt.Sprintf("%s cannot %s while %s", e.Machine, e.Event, e.From)
}

// fan makes one edge for each from-state.
func fan[S State](event Event, to S, from ...S) []Edge[S] {
	edges := make([]Edge[S], len(from))
	for i, f := range from {
		edges[i] = Edge[S]{f, event, to}
	}
	return edges
}

// join concatenates lists of edges.
func join[S State](lists ...[]Edge[S]) []Edge[S] {
	var all []Edge[S]
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}
