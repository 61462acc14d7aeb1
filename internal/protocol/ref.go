package protocol

import "github.com/forgeyard/forgeyard/internal/digest"

// RefV1 names an object by digest and size.
type RefV1 struct {
	Digest [32]byte
	Bytes  uint64
}

// NewRef returns the wire form.
func NewRef(r digest.Ref) RefV1 { return RefV1{Digest: r.Digest, Bytes: r.Bytes} }

// Domain returns the reference.
func (r RefV1) Domain() digest.Ref { return digest.Ref{Digest: r.Digest, Bytes: r.Bytes} }

// MaxObject bounds the size of an object that can be named, so that sums of offsets and lengths cannot overflow.
const MaxObject uint64 = 1 << 50

// Validate checks that it names something.
func (r RefV1) Validate() error {
	var c Check
	c.Digest("digest", r.Digest)
	c.That(r.Bytes <= MaxObject, "bytes", "is out of range")
	return c.Err()
}
