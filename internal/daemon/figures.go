package daemon

import (
	"context"
	"log/slog"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// observed is the store with an eye on the rules that agents have carried out: what they accepted, refused, ended and
// where they came back, in figures (07§184, 07§185, 09§207) and in the log. It changes nothing of what passes through.
type observed struct {
	*store.Store
	log                       *slog.Logger
	accepts, reconnects, lost *telemetry.Counter
	rejects, attempts         *telemetry.Counter
	execution                 *telemetry.Histogram
	took                      *durations
}

func newObserved(s *store.Store, m *telemetry.Metrics, took *durations, log *slog.Logger) *observed {
	var reasons, classes []string
	for r := forge.RejectOther; r <= forge.RejectAlreadyTaken; r++ {
		reasons = append(reasons, r.String())
	}
	for _, c := range forge.Classes() {
		classes = append(classes, c.String())
	}
	class := telemetry.Label{Name: "class", Values: classes}
	return &observed{
		Store:      s,
		log:        log,
		took:       took,
		accepts:    m.Counter("forgeyard_agent_lease_accepts_total", "Leases that agents have accepted."),
		rejects:    m.Counter("forgeyard_agent_lease_rejects_total", "Leases that agents have given back.", telemetry.Label{Name: "reason", Values: reasons}),
		lost:       m.Counter("forgeyard_leases_expired_total", "Leases that ended because nobody took or renewed them."),
		reconnects: m.Counter("forgeyard_transport_reconnects_total", "Registrations of processes that had registered before."),
		attempts:   m.Counter("forgeyard_attempts_completed_total", "Attempts whose result was accepted, by class.", class),
		execution: m.Histogram("forgeyard_attempt_execution_seconds", "How long workloads ran.",
			[]float64{.1, .5, 1, 5, 15, 60, 300, 1200, 3600, 14400}),
	}
}

// Do carries out a rule, and counts and tells it when it is committed.
func (c *observed) Do(ctx context.Context, class store.Class, cmd authority.Command) (authority.Answer, error) {
	answer, err := c.Store.Do(ctx, class, cmd)
	if err == nil {
		c.count(cmd, &answer)
		c.tell(ctx, cmd, &answer)
	}
	return answer, err
}

// tell logs what somebody who asks "what happened to my job" wants to read, one line for each turn that it took.
func (c *observed) tell(ctx context.Context, cmd authority.Command, answer *authority.Answer) {
	if !answer.Done && answer.Completion == 0 && len(answer.Verdicts) == 0 {
		return
	}
	switch cmd := cmd.(type) {
	case *authority.Register:
		c.log.InfoContext(ctx, "a runner has registered",
			telemetry.KeyRunner, cmd.Runner, telemetry.KeySession, cmd.Session, telemetry.KeyConnection, cmd.TransportSeq)
	case *authority.Offer:
		c.turn(ctx, "a job is offered", forge.AttemptContext{
			Job: cmd.Job, Attempt: cmd.Attempt, Lease: cmd.Lease, Runner: cmd.Fence.Runner, Session: cmd.Fence.Session,
		})
	case *authority.Claim:
		if cmd.Phase == forge.AttemptOffered && answer.Verdicts[0].Verdict == forge.VerdictContinue {
			c.turn(ctx, "an offer is accepted", cmd.Context)
		}
	case *authority.Reject:
		c.turn(ctx, "a lease is given back", cmd.Context, telemetry.KeyReason, cmd.Reason)
	case *authority.Expire:
		c.turn(ctx, "a lease has ended, for nobody took or renewed it", cmd.Context, telemetry.KeyState, cmd.State)
	case *authority.Absent:
		c.turn(ctx, "a lease has ended, for its agent holds nothing of it", cmd.Context)
	case *authority.Recover:
		c.turn(ctx, "an agent that came back told of an attempt", cmd.Item.Context)
	case *authority.Complete:
		if answer.Completion != 0 {
			c.turn(ctx, "a result came in", cmd.Completion.Context,
				telemetry.KeyClass, cmd.Completion.Outcome(), telemetry.KeyState, answer.Completion)
		}
	}
}

// turn logs one turn of an attempt.
func (c *observed) turn(ctx context.Context, what string, a forge.AttemptContext, more ...any) {
	c.log.InfoContext(ctx, what, append([]any{
		telemetry.KeyJob, a.Job, telemetry.KeyAttempt, a.Attempt, telemetry.KeyLease, a.Lease, telemetry.KeyRunner, a.Runner,
	}, more...)...)
}

func (c *observed) count(cmd authority.Command, answer *authority.Answer) {
	switch cmd := cmd.(type) {
	case *authority.Register:
		if answer.Done && cmd.TransportSeq > 1 {
			c.reconnects.Inc()
		}
	case *authority.Claim:
		granted := len(answer.Verdicts) == 1 && answer.Verdicts[0].Verdict == forge.VerdictContinue
		if cmd.Phase == forge.AttemptOffered && granted {
			c.accepts.Inc()
			c.took.accepted(cmd.Context)
		}
	case *authority.Offer:
		if answer.Done {
			c.took.offered(cmd)
		}
	case *authority.Phase:
		if answer.Done {
			c.took.phase(cmd.Context, cmd.Phase)
		}
	case *authority.Revoke:
		if answer.Done {
			c.took.ended(cmd.Context, false)
		}
	case *authority.Absent:
		if answer.Done {
			c.took.ended(cmd.Context, false)
		}
	case *authority.Reject:
		if answer.Done {
			c.took.ended(cmd.Context, false)
			c.rejects.Inc(cmd.Reason.String())
		}
	case *authority.Expire:
		if answer.Done {
			c.lost.Inc()
			c.took.ended(cmd.Context, false)
		}
	case *authority.Complete:
		if answer.Completion == forge.CompletionAccepted {
			c.took.ended(cmd.Completion.Context, true)
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
