package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func (s *Server) sessions(r *http.Request) (any, error) {
	out := api.List[api.Session]{Items: []api.Session{}}
	if s.cfg.Sessions != nil {
		out.Items = append(out.Items, s.cfg.Sessions()...)
	}
	err := s.cfg.Store.View(r.Context(), func(v *store.View) error {
		for i := range out.Items {
			one := &out.Items[i]
			id, err := forge.ParseID[forge.RunnerID](one.Runner)
			if err != nil {
				continue
			}
			switch runner, err := v.Runner(id); {
			case err == nil:
				one.RunnerName = runner.Name
			case !errors.Is(err, store.ErrNotFound): // it may have been deleted a moment ago
				return err
			}
		}
		return nil
	})
	return out, err
}

func (s *Server) transport(*http.Request) (any, error) {
	if s.cfg.Status == nil {
		return api.TransportStatus{}, nil
	}
	return s.cfg.Status(), nil
}

func (s *Server) protocols(*http.Request) (any, error) { return s.cfg.Protocols, nil }

func (s *Server) version(*http.Request) (any, error) { return s.cfg.Version, nil }

func (s *Server) audit(r *http.Request) (any, error) {
	n, before, err := pageOf(r)
	if err != nil {
		return nil, err
	}
	out := api.List[api.AuditEntry]{Items: []api.AuditEntry{}}
	err = s.cfg.Store.View(r.Context(), func(v *store.View) error {
		events, next, err := v.Audits(before, n)
		for _, e := range events {
			target, runner := e.Subject, ""
			if !e.Runner.IsZero() {
				runner = e.Runner.String()
			}
			if target == "" {
				target = runner
			}
			out.Items = append(out.Items, api.AuditEntry{
				ID: strconv.FormatUint(e.Sequence, 10), At: api.TimeOf(e.At), Actor: e.Actor, Action: e.Kind, Target: target, Runner: runner, Detail: e.Detail,
			})
		}
		if next > 0 {
			out.Next = strconv.FormatUint(next, 10)
		}
		return err
	})
	return out, err
}

// healthz says that the process lives and answers. It looks at nothing, so that nothing but the process can fail it.
func (s *Server) healthz(*http.Request) (any, error) { return api.Health{Status: "ok"}, nil }

// readyWithin bounds the checks of the daemon's parts.
const readyWithin = 5 * time.Second

// readyz says whether the daemon can work, and what keeps it from that. Where it cannot, the answer is a problem that
// lists what is not well, for clients, with the checks beside it.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
	defer cancel()
	out := api.Health{Status: "ok"}
	var p *api.Problem
	if s.cfg.Ready != nil {
		select { // anybody may ask, and a check is a transaction: there is one at a time
		case s.checking <- struct{}{}:
			out.Checks = s.cfg.Ready(ctx)
			<-s.checking
		case <-ctx.Done():
			s.fail(w, r, ctx.Err())
			return
		}
	}
	for _, c := range out.Checks {
		if c.OK {
			continue
		}
		if p == nil {
			p = api.NewProblem(api.CodeUnavailable, "the daemon is not ready")
		}
		p.Problems = append(p.Problems, api.Wrong{Path: c.Name, What: c.Detail})
	}
	if p != nil {
		s.refuse(w, r, p)
		return
	}
	s.reply(w, r, http.StatusOK, out)
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request) {
	if s.cfg.Metrics == nil {
		s.refuse(w, r, api.NewProblem(api.CodeNotFound, "this daemon keeps no figures"))
		return
	}
	s.cfg.Metrics.Handler().ServeHTTP(w, r)
}
