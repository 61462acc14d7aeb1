package protocol

import (
	"fmt"
	"strconv"
)

// Enum maps the numbers of one enumeration on the wire to domain values and back. The index is the number: it is
// written out, so that renumbering the domain does not change a byte. Index 0 is never used: 0 on the wire means that
// nothing was said.
type Enum[D comparable] []D

// Domain returns the value behind a number, or false for 0 and for a number that this build does not know.
func (e Enum[D]) Domain(n uint8) (D, bool) {
	var none D
	if n == 0 || int(n) >= len(e) {
		return none, false
	}
	return e[n], true
}

// Or returns the value behind a number, or other for a number that this build does not know.
func (e Enum[D]) Or(n uint8, other D) D {
	if d, ok := e.Domain(n); ok {
		return d
	}
	return other
}

// Wire returns the number of a value, or 0 for a value that has none.
func (e Enum[D]) Wire(d D) uint8 {
	for n := 1; n < len(e); n++ {
		if e[n] == d {
			return uint8(n)
		}
	}
	return 0
}

// Known reports whether n has a value.
func (e Enum[D]) Known(n uint8) bool { return n > 0 && int(n) < len(e) }

// Name spells a number for people.
func (e Enum[D]) Name(n uint8) string {
	if d, ok := e.Domain(n); ok {
		return fmt.Sprint(d)
	}
	if n == 0 {
		return "Unspecified"
	}
	return "unknown(" + strconv.Itoa(int(n)) + ")"
}
