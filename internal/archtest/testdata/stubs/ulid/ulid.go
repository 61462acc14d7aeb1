// Package ulid stands in for the module of that name.
package ulid

// ULID is an identifier.
type ULID [16]byte

// Make makes an identifier up.
func Make() ULID { return ULID{} }

// Parse reads one.
func Parse(string) (ULID, error) { return ULID{}, nil }

// Now reads the clock.
func Now() uint64 { return 0 }
