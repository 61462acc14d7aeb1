package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// maxHopeless is how many looks in a row must find a run without a runner before it is given up: longer than an agent takes to
// say what it can do, which it may learn from programs that have ten seconds to answer.
const maxHopeless = 5

// hopeless is what is watched of a run for which there may be no runner.
type hopeless struct {
	looks int   // in a row that found nothing that goes on or can
	err   error // why the run was given up; nil: it was not
}

// weigh gives the run up once nothing of it goes on and nothing can, where daemon and agent are in one process of this machine:
// no other runner comes.
func (b *board) weigh(ctx context.Context) {
	h := &b.f.hopeless
	if !b.f.app.here || h.err != nil {
		return
	}
	job, miss, stuck := b.stuck(ctx)
	if !stuck {
		h.looks = 0
		return
	}
	if h.looks++; h.looks < maxHopeless {
		return
	}
	if _, err := b.f.client.CancelRun(ctx, b.f.run); err != nil {
		return // the next look tries again, unless the run has ended
	}
	h.err = without("job "+jobTitle(job), miss)
}

// stuck reports whether every job that goes on waits for a runner that cannot be, and names one of them with what it lacks.
func (b *board) stuck(ctx context.Context) (job *api.Job, lacks api.Miss, _ bool) {
	for _, id := range slices.Sorted(maps.Keys(b.told)) {
		switch b.told[id] {
		case "Offered", "Active":
			return nil, lacks, false
		case "Ready":
			why, err := b.f.client.ExplainJob(ctx, id)
			if err != nil {
				return nil, lacks, false
			}
			miss, never := impossible(why)
			if !never {
				return nil, lacks, false
			}
			if job == nil {
				job, lacks = b.jobs[id], miss
			}
		}
	}
	return job, lacks, job != nil
}

// impossible is what keeps the nearest runner from a job, where not one of them could ever take it as things are.
func impossible(why *api.Explanation) (lacks api.Miss, never bool) {
	stays := func(m api.Miss) bool { return !m.Passes && m.Kind != forge.MissRefused.String() }
	for i, r := range why.Runners {
		at := slices.IndexFunc(r.Misses, stays)
		if at < 0 {
			return api.Miss{}, false
		}
		if i == 0 {
			lacks = r.Misses[at]
		}
	}
	return lacks, len(why.Runners) > 0
}

// without says for people that a job has no runner, and what to do.
func without(title string, miss api.Miss) error {
	do := "Correct what the job asks of its runner"
	what, _, _ := strings.Cut(miss.Text, " ")
	if less := map[string]string{"cpu": "1", "memory": "1GiB", "disk": "1GiB"}[what]; less != "" && miss.Kind == forge.MissCapacity.String() {
		do = fmt.Sprintf("Ask for less, as with --%s %s of a command or runner: { %s: %s } of a job", what, less, what, less)
	}
	return fmt.Errorf("this machine is the only runner here, and cannot take %s: %s\n%s, or name a daemon that has other runners: --server URL", title, miss.Text, do)
}
