//go:build !forgeyard_unsafe

package sandbox

// Unsafe says that this build can switch defences off. Such programs refuse to be agents.
const Unsafe = false

// Switches switches defences off, one by one, for proofs that an attack works without them. This build has none.
type Switches struct{}

// Off reports whether a defence is switched off.
func (Switches) Off(string) bool { return false }
