package cas

import (
	"context"
	"io"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// Only is a store of which just those objects may be had or put that allowed says; every other one is absent. Missing
// counts them as missing, Put refuses them with ErrNotFound. allowed is called by many at once; whether s has an object
// that is not allowed is never even looked up.
func Only(allowed func(digest.Ref) bool, s Store) Store { return &only{allowed, s} }

type only struct {
	allowed func(digest.Ref) bool
	s       Store
}

func (o *only) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	if !o.allowed(ref) {
		return nil, ErrNotFound
	}
	return o.s.Open(ctx, ref)
}

func (o *only) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	var ask []digest.Ref
	for _, ref := range refs {
		if o.allowed(ref) {
			ask = append(ask, ref)
		}
	}
	answer, err := o.s.Missing(ctx, ask)
	if err != nil || len(ask) == len(refs) {
		return answer, err
	}
	missing := make(map[digest.Ref]bool, len(answer))
	for _, ref := range answer {
		missing[ref] = true
	}
	return Distinct(refs, func(ref digest.Ref) bool { return missing[ref] || !o.allowed(ref) }), nil
}

func (o *only) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	if !o.allowed(ref) {
		return ErrNotFound
	}
	return o.s.Put(ctx, ref, r)
}

func (o *only) CopyFrom(ctx context.Context, src Source, refs []digest.Ref) error {
	for _, ref := range refs {
		if !o.allowed(ref) {
			return named(ref, ErrNotFound)
		}
	}
	return Copy(ctx, o.s, src, refs)
}

// Distinct returns those of refs that take says, in their order, each once.
func Distinct(refs []digest.Ref, take func(digest.Ref) bool) []digest.Ref {
	seen := make(map[digest.Ref]struct{}, len(refs))
	var list []digest.Ref
	for _, ref := range refs {
		if _, again := seen[ref]; again {
			continue
		}
		seen[ref] = struct{}{}
		if take(ref) {
			list = append(list, ref)
		}
	}
	return list
}
