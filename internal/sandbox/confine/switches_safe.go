//go:build !forgeyard_unsafe

package confine

// Switches switches defences off, one by one, for proofs that an attack works without them. This build has none.
type Switches struct{}

func (Switches) off(string) bool { return false }
