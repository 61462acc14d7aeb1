package agent

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/agent"
	"github.com/forgeyard/forgeyard/internal/doctor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/runner/admin"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// doctorChild is the command by which the doctor starts this program as its child.
const doctorChild = "mounts"

func (a *app) doctorCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "doctor", Short: "Check this machine, its certificate, and the way to the daemon", Args: cobra.NoArgs,
		Long: `Check what this machine can do for jobs and what mends what it cannot, its certificate, and
the way to the daemon, whether the agent runs or not. Nothing is changed.

Ends with 0 if jobs can be confined here, or the settings allow jobs that are not
(policy.allow_unconfined), with 1 if neither, and with 3 if the certificate, the way to the
daemon or the agent is not as it should be.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(); err != nil {
				return err
			}
			return a.doctor(cmd.Context())
		},
	}
	a.endpointFlag(cmd)
	cmd.AddCommand(&cobra.Command{
		Use: doctorChild, Short: "Try mounts in a mount namespace of its own", Args: cobra.NoArgs, Hidden: true,
		RunE: func(*cobra.Command, []string) error { return doctor.Child(a.env.Stdin, a.env.Stdout) },
	})
	return cmd
}

func (a *app) doctor(ctx context.Context) error {
	r := doctor.Examine(ctx, doctor.Options{
		Folder: a.settings.DataDir, Endpoints: a.options(nil).Endpoints, Child: []string{"doctor", doctorChild},
	})
	connected := a.connected(ctx)
	r.Findings = append(r.Findings, connected...)
	if err := a.print().Show(r, r.Table); err != nil {
		return err
	}
	a.print().Note("%s", r.Summary())
	if !r.Confined && !a.settings.Policy.AllowUnconfined {
		return program.Exit(program.CodeFailed, nil)
	}
	if slices.ContainsFunc(connected, func(f doctor.Finding) bool { return f.Grade == doctor.Missing }) {
		return program.Exit(program.CodeInfrastructure, nil)
	}
	return nil
}

// connected looks at what stands between this agent and its work, one thing after the other.
func (a *app) connected(ctx context.Context) []doctor.Finding {
	id, ok, err := agent.Enrolled(a.settings.DataDir)
	switch {
	case err != nil:
		return []doctor.Finding{wrong("certificate", err.Error(), "")}
	case !ok:
		return []doctor.Finding{wrong("certificate", "this agent is not enrolled", "forgeyard-agent enroll"+a.again()+" --endpoint quic://HOST:PORT --token-file FILE")}
	}
	all := append([]doctor.Finding{certificate(id)}, a.roads(ctx, id)...)
	return append(all, a.running(ctx)...)
}

// certificate says how long the certificate is good (07§192).
func certificate(id *trust.Identity) doctor.Finding {
	until := id.Leaf().NotAfter.Local().Format(time.DateTime)
	switch trust.ExpiryOf(id.Leaf(), time.Now()) {
	case trust.ExpiryFine, trust.ExpiryDue:
		return right("certificate", "of runner "+id.Runner().String()+", until "+until)
	case trust.ExpiryOver:
		return wrong("certificate", "expired at "+until, "start the agent: it gets a new one by itself if that was not long ago")
	}
	return wrong("certificate", "expires at "+until+"; the agent should have renewed it", "see why: forgeyard-agent status")
}

// roads tries every endpoint, with the certificate (case B98).
func (a *app) roads(ctx context.Context, id *trust.Identity) []doctor.Finding {
	o := a.options(nil)
	if len(o.Endpoints) == 0 {
		return []doctor.Finding{wrong("endpoints", "none is named", "use control_plane.endpoints or --endpoint")}
	}
	var all []doctor.Finding
	for _, endpoint := range o.Endpoints {
		check := "daemon at " + endpoint
		took, err := agent.Reach(ctx, o, id, endpoint)
		if err != nil {
			unreached := new(agent.UnreachedError)
			errors.As(err, &unreached) // nothing else comes of it
			all = append(all, wrong(check, unreached.Why(), unreached.Mend()))
			continue
		}
		all = append(all, right(check, "answers in "+took.Round(time.Millisecond).String()))
	}
	return all
}

// running asks the agent itself, if one runs.
func (a *app) running(ctx context.Context) []doctor.Finding {
	client := admin.NewClient(a.settings.DataDir)
	defer client.Close()
	health, err := client.Health(ctx)
	if err != nil {
		return []doctor.Finding{wrong("agent runs", err.Error(), "start it: forgeyard-agent run"+a.again())}
	}
	all := []doctor.Finding{right("agent runs", "")}
	for _, c := range health.Checks {
		f := right("agent's "+c.Kind, c.Detail)
		if c.Status != forge.Healthy.String() {
			f = wrong(f.Check, c.Detail, "")
		}
		all = append(all, f)
	}
	return all
}

func right(check, detail string) doctor.Finding {
	return doctor.Finding{Check: check, Grade: doctor.OK, Detail: detail}
}

func wrong(check, detail, mend string) doctor.Finding {
	return doctor.Finding{Check: check, Grade: doctor.Missing, Detail: detail, Mend: mend}
}
