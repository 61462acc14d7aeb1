package objects

import (
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
)

// Outputs implements attempt.Objects.
func (o *Objects) Outputs(of forge.AttemptContext) attempt.Outputs {
	far := o.cfg.Far(of)
	if adder, ok := far.(Adder); ok && o.cfg.InPlace {
		return &direct{Store: far, Adder: adder}
	}
	return &kept{near: o.near, far: far}
}

// direct is what an attempt leaves on its way into a store of this machine.
type direct struct {
	cas.Store
	Adder
}

// Deliver implements attempt.Outputs: there is nothing left to do.
func (*direct) Deliver(context.Context) error { return nil }

// Close implements attempt.Outputs.
func (*direct) Close() {}

// kept is what an attempt leaves, in the cache until the daemon has it. The cache gives none of it up before Close.
type kept struct {
	near *disk.Store
	far  cas.Store

	mu       sync.Mutex
	refs     []digest.Ref // in the order in which they came: a tree after all that it names
	releases []func()
}

// Add implements capture.Sink.
func (k *kept) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	ref, err := k.near.Add(ctx, r)
	if err == nil {
		k.keep(ref)
	}
	return ref, err
}

// Put implements capture.Sink.
func (k *kept) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	err := k.near.Put(ctx, ref, r)
	if err == nil {
		k.keep(ref)
	}
	return err
}

func (k *kept) keep(ref digest.Ref) {
	release := k.near.Pin(ref)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refs, k.releases = append(k.refs, ref), append(k.releases, release)
}

// Deliver implements attempt.Outputs. What the daemon has already is not sent, so it may be called again.
func (k *kept) Deliver(ctx context.Context) error {
	k.mu.Lock()
	refs := k.refs[:len(k.refs):len(k.refs)]
	k.mu.Unlock()
	if err := cas.Copy(ctx, k.far, k.near, refs); err != nil {
		return fmt.Errorf("upload %d objects: %w", len(refs), err)
	}
	return nil
}

// Close implements attempt.Outputs.
func (k *kept) Close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, release := range k.releases {
		release()
	}
	k.refs, k.releases = nil, nil
}
