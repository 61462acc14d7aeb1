package objects

import (
	"context"
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

// Deliver makes what a completion names count: it checks that the attempt's project holds every object of it and that trees are
// trees within the limits of their outputs, and records the roots as uploaded and live, for the rule that accepts the
// completion. It may be repeated. The errors: a *MissingError, upon which the peer sends what is missing and comes again (NOT_YET);
// an *OutputError or *cas.TreeError for what stays wrong (Invalid); any other leaves it open.
func (o *Objects) Deliver(ctx context.Context, attempt forge.AttemptID, outputs []forge.OutputRef) error {
	if len(outputs) == 0 {
		return nil
	}
	s, err := o.scope(ctx, attempt)
	if err != nil {
		return err
	}
	for _, out := range outputs {
		if err := s.deliverable(ctx, out); err != nil {
			return fmt.Errorf("output %d: %w", out.Output, err)
		}
	}
	err = o.rows.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		for _, out := range outputs {
			if err := tx.RecordUpload(attempt, out, true); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("record the outputs of attempt %v: %w", attempt, err)
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
