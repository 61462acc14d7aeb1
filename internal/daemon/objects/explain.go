package objects

import (
	"context"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// maxExplained bounds each list of an explanation.
const maxExplained = 100

// Stat is what the store has and holds.
type Stat struct {
	disk.Usage
	Room Room
	Held uint64 // rows: an object that two projects hold counts twice
}

// Stat counts. It reads the names and sizes of all objects.
func (o *Objects) Stat(ctx context.Context) (Stat, error) {
	var s Stat
	var err error
	if s.Usage, err = o.disk.Usage(ctx); err != nil {
		return s, err
	}
	if s.Room, err = o.Room(); err != nil {
		return s, err
	}
	err = o.rows.View(ctx, func(v *store.View) (err error) {
		s.Held, err = v.ObjectCount()
		return err
	})
	if err != nil {
		return s, fmt.Errorf("count what projects hold: %w", err)
	}
	return s, nil
}

// Explanation is why an object is kept. It is for whoever administers the daemon: it tells of all projects.
type Explanation struct {
	Ref     digest.Ref
	OnDisk  bool
	Holders []store.ObjectRow // the first 100
	Uses    []store.ObjectUse // as the root of an output, the newest 100
}

// Explain says what is known of an object.
func (o *Objects) Explain(ctx context.Context, ref digest.Ref) (Explanation, error) {
	e := Explanation{Ref: ref}
	missing, err := o.disk.Missing(ctx, []digest.Ref{ref})
	if err != nil {
		return e, err
	}
	e.OnDisk = len(missing) == 0
	err = o.rows.View(ctx, func(v *store.View) (err error) {
		if e.Holders, err = v.Holders(ref, maxExplained); err != nil {
			return err
		}
		e.Uses, err = v.ObjectUses(ref, maxExplained)
		return err
	})
	if err != nil {
		return e, fmt.Errorf("read who holds %v: %w", ref, err)
	}
	return e, nil
}

// Verify looks at every object, and deep also at its bytes. What is damaged is set aside and is missing from then on. See
// disk.Store.Verify.
func (o *Objects) Verify(ctx context.Context, deep bool, found func(disk.Finding) error) (disk.Report, error) {
	return o.disk.Verify(ctx, deep, found)
}

// Scrub reads some objects again, another time others. See disk.Store.Scrub.
func (o *Objects) Scrub(ctx context.Context, bytes forge.Bytes, found func(disk.Finding) error) (disk.Report, error) {
	return o.disk.Scrub(ctx, bytes, found)
}
