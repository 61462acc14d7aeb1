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
		return &direct{store: far, adder: adder}
	}
	return &kept{near: o.near, far: far}
}

// direct is what an attempt leaves on its way into a store of this machine.
type direct struct {
	store cas.Store
	adder Adder
	taken

	delivered bool // Deliver's
}

// Add implements capture.Sink.
func (d *direct) Add(ctx context.Context, r io.Reader) (digest.Ref, error) {
	ref, err := d.adder.Add(ctx, r)
	if err == nil {
		d.note(ref)
	}
	return ref, err
}

// Put implements capture.Sink.
func (d *direct) Put(ctx context.Context, ref digest.Ref, r io.Reader) error {
	err := d.store.Put(ctx, ref, r)
	if err == nil {
		d.note(ref)
	}
	return err
}

// Deliver implements attempt.Outputs. What was taken is where it goes; asked again, it looks whether it still is, since there
// is no other copy to send.
func (d *direct) Deliver(ctx context.Context) error {
	if !d.delivered {
		d.delivered = true
		return nil
	}
	missing, err := d.store.Missing(ctx, d.all())
	if err == nil && len(missing) > 0 {
		err = fmt.Errorf("%w: %d objects that were stored, such as %v", cas.ErrNotFound, len(missing), missing[0])
	}
	return err
}

// Close implements attempt.Outputs.
func (*direct) Close() {}

// taken is the names of what was taken, in the order in which it came: a tree after all that it names.
type taken struct {
	mu   sync.Mutex
	refs []digest.Ref
}

func (t *taken) note(ref digest.Ref) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refs = append(t.refs, ref)
}

func (t *taken) all() []digest.Ref {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.refs[:len(t.refs):len(t.refs)]
}

// kept is what an attempt leaves, in the cache until the daemon has it. The cache gives none of it up before Close.
type kept struct {
	near *disk.Store
	far  cas.Store
	taken

	pinning  sync.Mutex
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

// keep holds on to an object. One that the cache gave up in the moment before is missed by Deliver.
func (k *kept) keep(ref digest.Ref) {
	release := k.near.Pin(ref)
	k.pinning.Lock()
	k.releases = append(k.releases, release)
	k.pinning.Unlock()
	k.note(ref)
}

// Deliver implements attempt.Outputs. What the daemon has already is not sent.
func (k *kept) Deliver(ctx context.Context) error {
	refs := k.all()
	if err := cas.Copy(ctx, k.far, k.near, refs); err != nil {
		return fmt.Errorf("upload %d objects: %w", len(refs), err)
	}
	return nil
}

// Close implements attempt.Outputs.
func (k *kept) Close() {
	k.pinning.Lock()
	defer k.pinning.Unlock()
	for _, release := range k.releases {
		release()
	}
	k.releases = nil
}
