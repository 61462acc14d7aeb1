package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/program"
)

func (a *app) transportCommand() *cobra.Command {
	status := &cobra.Command{
		Use: "status", Short: "Show where the daemon listens for agents, and its fingerprint", Args: cobra.NoArgs,
		Example: "  forgeyard transport status",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			s, err := client.TransportStatus(cmd.Context())
			if err != nil {
				return err
			}
			return a.print().Show(s, func(w io.Writer) {
				console.Field(w, "Listens", s.Listen)
				console.Field(w, "CA fingerprint", s.Fingerprint)
				console.Field(w, "Connections", fmt.Sprint(s.Connections))
				console.Field(w, "Version", s.Version)
			})
		},
	}
	protocols := &cobra.Command{
		Use: "protocols", Short: "Show which versions of the agent protocol the daemon speaks", Args: cobra.NoArgs,
		Example: "  forgeyard transport protocols",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			p, err := client.Protocols(cmd.Context())
			if err != nil {
				return err
			}
			return a.print().Show(p, func(w io.Writer) {
				console.Field(w, "Versions", p.Least+" to "+p.Most)
				console.Field(w, "ALPN", strings.Join(p.ALPN, ", "))
				console.Field(w, "Features", strings.Join(p.Features, ", "))
			})
		},
	}
	return console.Group("transport", "Look at the connections between daemon and agents", status, a.sessions(), a.transportDoctor(), protocols)
}

func (a *app) sessions() *cobra.Command {
	return &cobra.Command{
		Use: "sessions", Short: "List the connections of agents", Args: cobra.NoArgs,
		Example: "  forgeyard transport sessions",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			list, err := client.Sessions(cmd.Context())
			if err != nil {
				return err
			}
			return a.print().Show(list, func(w io.Writer) {
				console.Row(w, "RUNNER", "SESSION", "ADDRESS", "STATE", "PROTOCOL", "SOFTWARE", "SINCE", "LAST HEARTBEAT")
				for _, s := range list.Items {
					console.Row(w, s.RunnerName, s.AgentSession, s.Remote, s.State, s.Protocol, s.Software, when(s.SinceAt), when(s.HeartbeatAt))
				}
			})
		},
	}
}

// A finding is what one look of the doctor showed.
type finding struct {
	Check  string `json:"check"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
	Mend   string `json:"mend,omitempty"` // what to do about it
}

func (a *app) transportDoctor() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check the way to the daemon, the daemon, and its agents", Args: cobra.NoArgs,
		Example: "  forgeyard transport doctor",
		Long:    "Check the way to the daemon, the daemon, and its agents. Ends with 3 if something is wrong, 4 if it is the token.\nFor an agent that does not come, see \"forgeyard-agent doctor\" on its machine.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			findings := a.examine(cmd.Context(), client)
			if err := a.print().Show(findings, func(w io.Writer) {
				for _, f := range findings {
					console.Row(w, mark(f.OK), f.Check, f.Detail)
				}
				if f := findings[0]; !f.OK {
					_, _ = fmt.Fprintln(w, "→ "+f.Mend) // Show tells of what cannot be written
				}
			}); err != nil {
				return err
			}
			return verdict(findings)
		},
	}
}

// verdict ends the doctor by the first thing that is wrong.
func verdict(findings []finding) error {
	for _, f := range findings {
		if !f.OK && f.Check == tokenCheck {
			return program.Exit(program.CodeAuth, nil)
		}
		if !f.OK {
			return program.Exit(program.CodeInfrastructure, nil)
		}
	}
	return nil
}

func mark(ok bool) string {
	if ok {
		return "ok"
	}
	return "FAIL"
}

// tokenCheck is the finding that ends the doctor with the code for authentication.
const tokenCheck = "token is accepted"

// examine looks at one thing after the other and stops where the rest would fail for the same reason.
func (a *app) examine(ctx context.Context, client *api.Client) []finding {
	version, err := client.Version(ctx)
	if isCode(err, api.CodeUnauthenticated, api.CodeForbidden) {
		return []finding{{Check: "daemon answers", OK: true}, {Check: tokenCheck, Detail: err.Error()}}
	}
	if err != nil {
		mend := fmt.Sprintf("does a daemon run at %s? There, \"forgeyard-daemon serve\" prints its address for HTTP; saved ones: forgeyard context list", a.serverName())
		if isCode(err, api.CodeNoRoute, api.CodeMethod) {
			mend = fmt.Sprintf("%s is of another release, and this is %s: install the same on both", a.serverName(), a.env.Version)
		}
		return []finding{{Check: "daemon answers", Detail: err.Error(), Mend: mend}}
	}
	all := []finding{{Check: "daemon answers", OK: true, Detail: "version " + version.Version}}
	all = append(all, readiness(ctx, client)...)
	status, err := client.TransportStatus(ctx)
	if err != nil {
		return append(all, finding{Check: tokenCheck, Detail: err.Error()})
	}
	all = append(all, finding{Check: tokenCheck, OK: true}, finding{Check: "listens for agents", OK: status.Listen != "", Detail: status.Listen})
	f := finding{Check: "agents are connected", OK: status.Connections > 0, Detail: fmt.Sprint(status.Connections)}
	if !f.OK {
		f.Detail = "none; on a machine that should be one: forgeyard-agent doctor"
	}
	return append(all, f)
}

func readiness(ctx context.Context, client *api.Client) []finding {
	health, err := client.Ready(ctx)
	var p *api.Problem
	if errors.As(err, &p) || health == nil {
		return []finding{{Check: "daemon is ready", Detail: fmt.Sprint(err)}}
	}
	all := []finding{{Check: "daemon is ready", OK: true}}
	for _, c := range health.Checks {
		all = append(all, finding{Check: c.Name, OK: c.OK, Detail: c.Detail})
	}
	return all
}
