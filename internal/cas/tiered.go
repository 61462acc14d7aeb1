package cas

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// wholeBytes is up to which size Tiered holds an object in memory to see that it is right before it gives a byte of it.
const wholeBytes = 1 << 20

// Tiered is a store before another: it reads near, and fetches from far what near has not, or has damaged; then near has
// it again ("healed"). Objects are put near only, and missing are those that near has not. It gives no byte of an object
// that is damaged near, not even before an error: large objects are read twice for that.
func Tiered(near Store, far Source) Store { return &tiered{near, far} }

type tiered struct {
	near Store
	far  Source
}

func (t *tiered) Open(ctx context.Context, ref digest.Ref) (io.ReadCloser, error) {
	r, err := sure(ctx, t.near, ref)
	var corrupt *CorruptError
	if !errors.Is(err, ErrNotFound) && !errors.As(err, &corrupt) {
		return r, err
	}
	if err := CopyOne(ctx, t.near.Put, t.far, ref); err != nil {
		if corrupt != nil && errors.Is(err, ErrNotFound) {
			return nil, corrupt // it was there and is lost: that says more than that it is nowhere
		}
		return nil, err
	}
	return sure(ctx, t.near, ref)
}

// Sound is a reader that may have checked its whole object before it gave the first byte, as stores do with small ones.
type Sound interface {
	Sound() bool
}

// sure opens an object that is known to be right.
func sure(ctx context.Context, s Source, ref digest.Ref) (io.ReadCloser, error) {
	r, err := s.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	if sound, ok := r.(Sound); ok && sound.Sound() {
		return r, nil
	}
	if ref.Bytes <= wholeBytes {
		data, err := io.ReadAll(r)
		if err := errors.Join(err, r.Close()); err != nil {
			return nil, err
		}
		return io.NopCloser(bytes.NewReader(data)), nil
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	if err := r.Close(); err != nil {
		return nil, err
	}
	return s.Open(ctx, ref)
}

func (t *tiered) Missing(ctx context.Context, refs []digest.Ref) ([]digest.Ref, error) {
	return t.near.Missing(ctx, refs)
}

func (t *tiered) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	return t.near.Put(ctx, ref, r)
}

func (t *tiered) CopyFrom(ctx context.Context, src Source, refs []digest.Ref) error {
	return Copy(ctx, t.near, src, refs)
}
