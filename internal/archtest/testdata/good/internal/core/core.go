// Package core decides, and uses all that pure code may use.
package core

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"example.com/good/codec"
	_ "example.com/good/internal/leaf"
	"github.com/oklog/ulid/v2"
)

var table = sync.OnceValue(func() []int { return nil })

// Kind numbers nothing on the wire.
type Kind int

// The kinds.
const (
	First Kind = iota
	Second
)

// Step is told the time.
func Step(now time.Time, m map[string]int, w io.Writer) []string {
	deadline := now.Add(time.Minute).UTC()
	if now.Before(deadline) {
		fmt.Fprint(w, len(table()), m["x"])
	}
	for i := range 3 {
		delete(m, fmt.Sprint(i))
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		m[key]++
	}
	_ = slices.SortedFunc((maps.Values[map[string]int](m)), func(a, b int) int { return a - b })
	clear(m)
	return nil
}

// ID reads an identifier.
func ID(text string) (ulid.ULID, error) { return ulid.Parse(text) }

// Local and Now are names of our own.
func Local() {}

// Now is told too.
func Now() { Local() }

var _ codec.Unit
