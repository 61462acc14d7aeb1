package objects

import (
	"context"
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// OutputError says that a completion names an output that its job may not have. Sending it again does not help.
type OutputError struct {
	Output uint16
	Reason string
}

func (e *OutputError) Error() string {
	return fmt.Sprintf("output %d of the completion is refused: %s", e.Output, e.Reason)
}

// Deliver makes what a completion of an attempt names count: it checks that the attempt's project holds every object of it and
// that trees are trees within the limits of their outputs, and records the roots for the rule about the completion: as live, or
// as known where something below them is missing still. It may be repeated. The errors: a *MissingError, upon which the rule
// says NOT_YET, and the peer sends what is missing and comes again; an *OutputError, a *cas.TreeError or ErrForeign for what
// stays wrong, of which nothing is recorded, so that the rule says Invalid; any other leaves it open.
func (o *Objects) Deliver(ctx context.Context, of forge.AttemptContext, outputs []forge.OutputRef) error {
	if len(outputs) == 0 {
		return nil
	}
	s, err := o.scope(ctx, of.Attempt)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return ErrForeign
	case err != nil:
		return err
	case s.of != of:
		return ErrForeign
	}
	var later *MissingError
	live := make([]bool, len(outputs))
	for i, out := range outputs {
		err := s.deliverable(ctx, out)
		if err != nil && !errors.As(err, &later) {
			return fmt.Errorf("output %d: %w", out.Output, err)
		}
		live[i] = err == nil
	}
	err = o.rows.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		for i, out := range outputs {
			if err := tx.RecordUpload(of.Attempt, out, live[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record the outputs of attempt %v: %w", of.Attempt, err)
	}
	if later != nil {
		return later
	}
	return nil
}

// deliverable checks one output.
func (s *Scope) deliverable(ctx context.Context, out forge.OutputRef) error {
	if int(out.Output) >= len(s.spec.Outputs) {
		return &OutputError{out.Output, fmt.Sprintf("the job declares %d", len(s.spec.Outputs))}
	}
	limit := s.spec.Outputs[out.Output]
	if !out.Tree {
		missing, err := s.project.Missing(ctx, []digest.Ref{out.Ref})
		switch {
		case err != nil:
			return err
		case len(missing) > 0:
			return missingError(missing)
		case out.Ref.Bytes > uint64(limit.MaxBytes):
			return &OutputError{out.Output, fmt.Sprintf("it has %d bytes, at most %d are allowed", out.Ref.Bytes, limit.MaxBytes)}
		}
		return nil
	}
	c, err := s.objects.complete(ctx, s.project.name, out.Ref)
	switch {
	case err != nil:
		return err
	case c.totals.Bytes > limit.MaxBytes:
		return &OutputError{out.Output, fmt.Sprintf("it has %d bytes, at most %d are allowed", c.totals.Bytes, limit.MaxBytes)}
	case c.totals.Files > uint64(limit.MaxFiles):
		return &OutputError{out.Output, fmt.Sprintf("it has %d files, at most %d are allowed", c.totals.Files, limit.MaxFiles)}
	}
	return nil
}
