package cas

import (
	"context"
	"errors"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// copyWorkers bounds the objects that Copy has under way at a time.
const copyWorkers = 4

// Copy gives dst those of refs that it lacks, from src, with a few objects at a time. A src that is a CopierTo or
// else a dst that is a CopierFrom does it itself, as with io.Copy. It ends at the first error; what arrived until then stays.
func Copy(ctx context.Context, dst Sink, src Source, refs []digest.Ref) error {
	if s, ok := src.(CopierTo); ok {
		return s.CopyTo(ctx, dst, refs)
	}
	if d, ok := dst.(CopierFrom); ok {
		return d.CopyFrom(ctx, src, refs)
	}
	missing, err := dst.Missing(ctx, refs)
	if err != nil {
		return err
	}
	return Each(ctx, missing, copyWorkers, func(ctx context.Context, ref digest.Ref) error {
		return CopyOne(ctx, dst.Put, src, ref)
	})
}

// CopyOne gives an object to put, from src.
func CopyOne(ctx context.Context, put PutFunc, src Source, ref digest.Ref) error {
	r, err := src.Open(ctx, ref)
	if err != nil {
		return named(ref, err)
	}
	err = put(ctx, ref, r)
	return errors.Join(err, r.Close())
}

// Each calls f for each object, by so many workers, and returns when all of them have. The first error ends it and the
// context of the others.
func Each(ctx context.Context, refs []digest.Ref, workers int, f func(context.Context, digest.Ref) error) error {
	g, ctx := errgroup.WithContext(ctx)
	work := make(chan digest.Ref)
	for range min(workers, len(refs)) {
		g.Go(func() error {
			for ref := range work {
				if err := f(ctx, ref); err != nil {
					return err
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		defer close(work)
		for _, ref := range refs {
			select {
			case work <- ref:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
	return g.Wait()
}
