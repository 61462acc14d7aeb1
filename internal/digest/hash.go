package digest

import "github.com/zeebo/blake3"

// Hash is a digest in the making: bytes are written, and Ref names all that were written so far. Its state cannot be
// stored; whoever continues another day starts over from the first byte. One goroutine uses it at a time.
type Hash struct {
	h     *blake3.Hasher
	bytes uint64
}

// NewHash returns the hash of no bytes yet. It takes a few KiB: reuse it with Reset where many are made.
func NewHash() *Hash { return &Hash{h: blake3.New()} }

// Write adds bytes. It takes them all and never fails.
func (h *Hash) Write(p []byte) (int, error) {
	h.bytes += uint64(len(p))
	return h.h.Write(p)
}

// Ref names what was written so far. More may be written after.
func (h *Hash) Ref() Ref {
	var d Digest
	h.h.Sum(d[:0])
	return Ref{Digest: d, Bytes: h.bytes}
}

// Reset starts over.
func (h *Hash) Reset() {
	h.h.Reset()
	h.bytes = 0
}
