package digest

import "github.com/zeebo/blake3"

// Context separates digests of different meaning (BLAKE3 derive-key mode). The strings are frozen: another
// string is another identity for the same bytes.
type Context string

// The contexts in use.
const (
	// JobSpec identifies an immutable job specification by its exact encoded bytes.
	JobSpec Context = "forgeyard.dev 2026-11 job specification v1"
	// Capabilities identifies a canonical capability snapshot of a runner.
	Capabilities Context = "forgeyard.dev 2026-11 runner capabilities v1"
	// Result identifies what a completion claims, so that a repeated completion can be told from a changed one.
	Result Context = "forgeyard.dev 2026-11 attempt result v1"
	// WireSchema identifies the shape of a wire struct.
	WireSchema Context = "forgeyard.dev 2026-11 wire schema v1"
)

// Sum returns the digest of data under c.
func (c Context) Sum(data []byte) Digest {
	var d Digest
	blake3.DeriveKey(string(c), data, d[:])
	return d
}
