package cas

import (
	"context"
	"errors"
	"sync/atomic"

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

// CopyToHasher is CopyOne for a put that hashes what it reads before it returns nil, as stores on a disk do. Of a source whose
// readers are Plain it takes the bytes as they are, so that they are not hashed twice.
func CopyToHasher(ctx context.Context, put PutFunc, src Source, ref digest.Ref) error {
	r, err := src.Open(ctx, ref)
	if err != nil {
		return named(ref, err)
	}
	plain, ok := r.(Plain)
	if !ok {
		err = put(ctx, ref, r)
		return errors.Join(err, r.Close())
	}
	err = put(ctx, ref, plain.Plain())
	var wrong *MismatchError
	if errors.As(err, &wrong) && wrong.Ref == ref {
		err = plain.Wrong()
	}
	return errors.Join(err, r.Close())
}

// Each calls f for each object, by so many workers, and returns when all of them have. The first error ends it and the
// context of the others.
func Each(ctx context.Context, refs []digest.Ref, workers int, f func(context.Context, digest.Ref) error) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64 // the object whose turn it is
	for range min(workers, len(refs)) {
		g.Go(func() error {
			for {
				at := int(next.Add(1)) - 1
				if at >= len(refs) {
					return nil
				}
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				if err := f(ctx, refs[at]); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}
