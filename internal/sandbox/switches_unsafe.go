//go:build forgeyard_unsafe

package sandbox

import "slices"

// Unsafe says that this build can switch defences off. Such programs refuse to be agents.
const Unsafe = true

// Switches switches defences off, one by one, for proofs that an attack works without them.
type Switches struct {
	Without []string // defences, by the names that package confine, view and launch give them
}

// Off reports whether a defence is switched off.
func (s Switches) Off(defence string) bool { return slices.Contains(s.Without, defence) }
