//go:build forgeyard_unsafe

package confine

import "slices"

// Switches switches defences off, one by one, for proofs that an attack works without them.
type Switches struct {
	Without []string // names of Defences
}

func (s Switches) off(defence string) bool { return slices.Contains(s.Without, defence) }
