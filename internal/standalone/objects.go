package standalone

import (
	"context"
	"io"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// inPlace gives the agent the daemon's store where it lies, with the same rights as over a connection.
func inPlace(o *objects.Objects) func(forge.AttemptContext) cas.Store {
	return func(of forge.AttemptContext) cas.Store { return place{o, of} }
}

// place is the daemon's store as one attempt may use it. Its scope is looked up for each call: a lease may end.
type place struct {
	objects *objects.Objects
	of      forge.AttemptContext
}

func (p place) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	scope, err := p.objects.Attempt(ctx, p.of)
	if err != nil {
		return nil, err
	}
	return scope.Open(ctx, ref)
}

func (p place) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	scope, err := p.objects.Attempt(ctx, p.of)
	if err != nil {
		return nil, err
	}
	return scope.Missing(ctx, refs)
}

func (p place) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	scope, err := p.objects.Attempt(ctx, p.of)
	if err != nil {
		return err
	}
	return scope.Put(ctx, ref, r)
}
