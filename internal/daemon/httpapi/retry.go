package httpapi

import (
	"net/http"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// retry starts a run that tries another again.
func (s *Server) retry(r *http.Request, request *api.RunRequest, trust forge.TrustClass, key string) (any, error) {
	retry := request.Retry
	var wrong forge.Problems
	if request.Project != "" || request.Name != "" || request.Pipeline != nil || len(request.Jobs) > 0 {
		wrong = append(wrong, forge.Problem{Path: "retry", What: "stands alone: everything else is that of the run"})
	}
	if retry.All && len(retry.Jobs) > 0 {
		wrong = append(wrong, forge.Problem{Path: "retry.jobs", What: "are all jobs already, as retry.all says"})
	}
	if len(retry.Jobs) > forge.MaxJobsPerRun {
		wrong = append(wrong, forge.Problem{Path: "retry.jobs", What: "has " + strconv.Itoa(len(retry.Jobs)) + " items, at most " + strconv.Itoa(forge.MaxJobsPerRun)})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	id, err := s.find(r, retry.Run)
	if err != nil {
		return nil, err
	}
	run, made, err := s.cfg.Control.Retry(r.Context(), control.Retry{
		Run: id, All: retry.All, Jobs: retry.Jobs, Trust: trust, Key: key, Actor: actor(r.Context()),
	})
	if err != nil {
		return nil, err
	}
	out, err := s.run(r, run.ID)
	if !made {
		return choice{http.StatusOK, out}, err
	}
	return out, err
}
