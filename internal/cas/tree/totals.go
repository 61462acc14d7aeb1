package tree

import (
	"math"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// TotalsOf counts a folder's entries, sorted by name, and all below them. For entries that Encode or Decode passed it is
// within the bounds of a tree; of others it may be beyond them, but does not wrap.
func TotalsOf(entries []Entry) Totals {
	t := Totals{Hazards: nameHazards(entries)}
	for i := range entries {
		e := &entries[i]
		depth := uint16(1)
		switch e.Kind {
		case File:
			t.Files = plus(t.Files, 1)
			t.Bytes = forge.Bytes(plus(uint64(t.Bytes), e.Ref.Bytes))
		case Folder:
			t.Files = plus(t.Files, max(1, e.Totals.Files))
			t.Bytes = forge.Bytes(plus(uint64(t.Bytes), uint64(e.Totals.Bytes)))
			t.Hazards |= e.Totals.Hazards
			depth += min(e.Totals.Depth, math.MaxUint16-1)
		default:
			t.Files = plus(t.Files, 1)
		}
		t.Depth = max(t.Depth, depth)
	}
	return t
}

// plus adds, and stays at the top.
func plus(a, b uint64) uint64 {
	if a > math.MaxUint64-b {
		return math.MaxUint64
	}
	return a + b
}
