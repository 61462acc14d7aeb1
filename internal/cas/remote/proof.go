package remote

import (
	"context"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// Prove returns a Part that stores nothing: of an object that is here already, it finds out whether another has it too. What is
// no such object ends in a *cas.MismatchError.
func Prove(ref digest.Ref) Part { return &proof{ref: ref, hash: digest.NewHash()} }

type proof struct {
	ref  digest.Ref
	got  uint64
	hash *digest.Hash
}

func (p *proof) Held() uint64 { return 0 }

func (p *proof) Write(b []byte) (int, error) {
	if p.got += uint64(len(b)); p.got > p.ref.Bytes {
		return 0, &cas.MismatchError{Ref: p.ref, Got: digest.Ref{Bytes: p.got}}
	}
	return p.hash.Write(b)
}

func (p *proof) Commit(context.Context) error {
	if got := p.hash.Ref(); got != p.ref {
		return &cas.MismatchError{Ref: p.ref, Got: got}
	}
	return nil
}

func (p *proof) Close() error { return nil }

// again is a Part whose first bytes come once more, from a peer that cannot leave them out. They are dropped; that the whole is
// right is found out at its end.
type again struct {
	Part
	left uint64
}

func (a *again) Held() uint64 { return 0 }

func (a *again) Write(b []byte) (int, error) {
	n := min(a.left, uint64(len(b)))
	a.left -= n
	if n == uint64(len(b)) {
		return len(b), nil
	}
	m, err := a.Part.Write(b[n:])
	return int(n) + m, err //nolint:gosec // at most len(b)
}
