package daemon

import (
	"context"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// counted is the store with an eye on the rules that agents have carried out: what they accepted, refused, ended and
// where they came back (07§184, 07§185, 09§207). It changes nothing of what passes through.
type counted struct {
	*store.Store
	accepts, reconnects, lost *telemetry.Counter
	rejects, attempts         *telemetry.Counter
	execution                 *telemetry.Histogram
}

func newCounted(s *store.Store, m *telemetry.Metrics) *counted {
	var reasons, classes []string
	for r := forge.RejectOther; r <= forge.RejectAlreadyTaken; r++ {
		reasons = append(reasons, r.String())
	}
	for _, c := range forge.Classes() {
		classes = append(classes, c.String())
	}
	class := telemetry.Label{Name: "class", Values: classes}
	return &counted{
		Store:      s,
		accepts:    m.Counter("forgeyard_agent_lease_accepts_total", "Leases that agents have accepted."),
		rejects:    m.Counter("forgeyard_agent_lease_rejects_total", "Leases that agents have given back.", telemetry.Label{Name: "reason", Values: reasons}),
		lost:       m.Counter("forgeyard_leases_expired_total", "Leases that ended because nobody took or renewed them."),
		reconnects: m.Counter("forgeyard_transport_reconnects_total", "Registrations of processes that had registered before."),
		attempts:   m.Counter("forgeyard_attempts_completed_total", "Attempts whose result was accepted, by class.", class),
		execution: m.Histogram("forgeyard_attempt_execution_seconds", "How long workloads ran.",
			[]float64{.1, .5, 1, 5, 15, 60, 300, 1200, 3600, 14400}),
	}
}

// Do carries out a rule and counts it when it is committed.
func (c *counted) Do(ctx context.Context, class store.Class, cmd authority.Command) (authority.Answer, error) {
	answer, err := c.Store.Do(ctx, class, cmd)
	if err == nil {
		c.count(cmd, &answer)
	}
	return answer, err
}

func (c *counted) count(cmd authority.Command, answer *authority.Answer) {
	switch cmd := cmd.(type) {
	case *authority.Register:
		if answer.Done && cmd.TransportSeq > 1 {
			c.reconnects.Inc()
		}
	case *authority.Claim:
		granted := len(answer.Verdicts) == 1 && answer.Verdicts[0].Verdict == forge.VerdictContinue
		if cmd.Phase == forge.AttemptOffered && granted {
			c.accepts.Inc()
		}
	case *authority.Reject:
		if answer.Done {
			c.rejects.Inc(cmd.Reason.String())
		}
	case *authority.Expire:
		if answer.Done {
			c.lost.Inc()
		}
	case *authority.Complete:
		if answer.Completion == forge.CompletionAccepted {
			c.attempts.Inc(cmd.Completion.Outcome().String())
			c.execution.Observe(cmd.Completion.Result.Duration.Seconds())
		}
	}
}

// gauges shows what control knows of the fleet and of the jobs.
func gauges(m *telemetry.Metrics, c *control.Control) {
	m.GaugeFunc("forgeyard_runners_connected", "Runners that are in step.", func() float64 { return float64(c.Connections()) })
	m.GaugeFunc("forgeyard_runners_under_pressure", "Runners that are short of something.", func() float64 { return float64(c.UnderPressure()) })
	m.GaugeFunc("forgeyard_jobs_waiting", "Jobs that wait for a runner.", func() float64 { return float64(c.Waiting()) })
}
