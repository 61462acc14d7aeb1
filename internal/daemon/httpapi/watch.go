package httpapi

import (
	"context"
	"net/http"
	"slices"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// watchRun streams the changes of a run: first everything as it is, then what differs from that. States that came and
// went between two looks are not seen, so a stream that is opened anew is as good as one that never broke.
func (s *Server) watchRun(w http.ResponseWriter, r *http.Request) error {
	id, err := s.find(r, r.PathValue("id"))
	if err != nil {
		return err
	}
	changes := s.cfg.Store.Subscribe()
	defer changes.Close()
	e := newEvents(w, api.TypeEvents)
	return e.alive(r.Context(), func(ctx context.Context) error {
		seen := &watched{run: id, states: map[forge.ULID]string{}}
		what := store.Changes{All: true}
		for {
			found, over, err := s.look(ctx, seen, what)
			if err != nil {
				return err
			}
			for _, change := range found {
				if err := e.send(0, api.EventChange, change); err != nil {
					return err
				}
			}
			if over {
				run, err := s.run(r.WithContext(ctx), id)
				if err != nil {
					return err
				}
				return e.send(0, api.EventEnd, run)
			}
			if what, err = s.next(ctx, changes, seen); err != nil {
				return err
			}
		}
	})
}

// watched is what a watcher has been told.
type watched struct {
	run    forge.RunID
	states map[forge.ULID]string
	jobs   map[forge.JobID]bool
}

// next waits for a change that may be about the run.
func (s *Server) next(ctx context.Context, changes *store.Subscription, seen *watched) (store.Changes, error) {
	for {
		select {
		case <-ctx.Done():
			return store.Changes{}, context.Cause(ctx)
		case <-changes.C():
		}
		c := changes.Take()
		if seen.concerns(c) {
			return c, nil
		}
	}
}

// concerns reports whether a change may be about the run. Of attempts it is their job that says so: what changes of one alone is
// its log, of which a watcher is told nothing.
func (w *watched) concerns(c store.Changes) bool {
	return c.All || slices.Contains(c.Runs, w.run) || slices.ContainsFunc(c.Jobs, func(id forge.JobID) bool { return w.jobs[id] })
}

// look compares the run with what was told. Attempts are read where something about them may have changed.
func (s *Server) look(ctx context.Context, seen *watched, c store.Changes) (found []api.RunEvent, over bool, err error) {
	err = s.cfg.Store.View(ctx, func(v *store.View) error {
		run, err := v.Run(seen.run)
		if err != nil {
			return err
		}
		jobs, err := v.Jobs(seen.run)
		if err != nil {
			return err
		}
		seen.jobs = make(map[forge.JobID]bool, len(jobs))
		for i := range jobs {
			j := &jobs[i]
			seen.jobs[j.ID] = true
			found = seen.tell(found, j.ID.ULID, api.RunEvent{
				Kind: "job", ID: j.ID.String(), Job: string(j.Key), To: j.State.String(), Why: control.JobReason(j), At: api.TimeOf(j.Changed),
			})
			if j.Authority.Attempts == 0 || !c.All && j.Authority.Open.Attempt.IsZero() && !slices.Contains(c.Jobs, j.ID) {
				continue
			}
			attempts, err := v.Attempts(j.ID)
			if err != nil {
				return err
			}
			for k := range attempts {
				a := &attempts[k]
				found = seen.tell(found, a.Authority.ID.ULID, api.RunEvent{
					Kind: "attempt", ID: a.Authority.ID.String(), Job: string(j.Key), To: a.Authority.State.String(),
					Why: control.AttemptReason(a), At: api.TimeOf(max(a.Created, a.Accepted, a.Started, a.Ended)),
				})
			}
		}
		found = seen.tell(found, run.ID.ULID, api.RunEvent{
			Kind: "run", ID: run.ID.String(), To: run.State.String(), Why: control.RunReason(&run), At: api.TimeOf(max(run.Created, run.Started, run.Ended)),
		})
		over = run.State.Ended()
		return nil
	})
	return found, over, err
}

// tell appends a change where the state is not the one that was told last.
func (w *watched) tell(to []api.RunEvent, id forge.ULID, e api.RunEvent) []api.RunEvent {
	if w.states[id] == e.To {
		return to
	}
	e.From = w.states[id]
	w.states[id] = e.To
	return append(to, e)
}
