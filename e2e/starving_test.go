//go:build linux

package e2e_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Case B18: jobs that leave no core idle for three leases take nothing from the agent that renews them, although it has no
// more of the machine than any other process.
func TestBusyCoresLoseNoLease(t *testing.T) {
	s := newStory(t)
	loops := runtime.NumCPU() + 2
	s.agent("one", loops, "")
	before := s.session()
	spin := fmt.Sprintf(`renice -n 5 -p $$ >/dev/null; end=$(($(date +%%s)+%d))
		while [ $(date +%%s) -lt $end ]; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; done`, int(3*fleet.Fast.TTL.Seconds()))
	request := &api.RunRequest{}
	for i := range loops {
		job := fleet.Shell(spin, func(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(0))} }).Jobs[0]
		job.Key = fmt.Sprintf("loop-%d", i)
		request.Jobs = append(request.Jobs, job)
	}
	run, err := s.fleet.Daemon.AwaitRun(s.ctx, s.client, s.submit(request).ID)
	s.must(err)
	for _, j := range run.Jobs {
		job, err := s.client.Job(s.ctx, j.ID)
		s.must(err)
		if classOf(t, job, "Succeeded", "Succeeded"); len(job.AllAttempts) != 1 {
			t.Errorf("%s took %d attempts", job.Key, len(job.AllAttempts))
		}
	}
	if after := s.session(); after != before {
		t.Errorf("the agent came by connection %s and is there by %s", before, after)
	}
}

// session waits until one connection stands that is in step, and returns its id.
func (s *story) session() (id string) {
	s.t.Helper()
	s.must(fleet.Await(s.ctx, "one connection to be in step", func() (bool, error) {
		list, err := s.client.Sessions(s.ctx)
		if err != nil || len(list.Items) != 1 {
			return false, err
		}
		id = list.Items[0].ID
		return list.Items[0].State == forge.ConnActive.String(), nil
	}))
	return id
}
