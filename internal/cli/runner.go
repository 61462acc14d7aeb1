package cli

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
)

func (a *app) runnerCommand() *cobra.Command {
	return console.Group("runner", "List, make and manage the machines that run jobs",
		a.runnerList(), a.runnerShow(), a.runnerWhy(), a.runnerCreate(), a.enrollToken(),
		a.runnerVerb(api.RunnerDrain, "Give a runner no new jobs; those that it has go on", "draining"),
		a.runnerVerb(api.RunnerResume, "End draining", "takes jobs again"),
		a.runnerVerb(api.RunnerDisable, "Stop what a runner runs, and keep it from connecting", "disabled"),
		a.runnerVerb(api.RunnerEnable, "Let a disabled runner connect again", "enabled"),
		a.runnerVerb(api.RunnerRevoke, "Refuse every certificate of a runner, for good", "revoked"),
		a.runnerDelete())
}

func (a *app) runnerList() *cobra.Command {
	var page api.Page
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List runners by name", Args: cobra.NoArgs,
		Example: "  forgeyard runner list\n  forgeyard runner list -o json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			list, err := client.Runners(cmd.Context(), page)
			if err != nil {
				return err
			}
			defer a.more(cmd, list.Next)
			return a.print().Show(list, func(w io.Writer) {
				console.Row(w, "NAME", "STATE", "POOL", "JOBS", "VERSION", "HEALTH", "LAST SEEN", "LAST REJECT")
				for _, r := range list.Items {
					console.Row(w, r.Name, r.State, r.Pool, fmt.Sprintf("%d/%d", len(r.Active), slots(&r)), r.Version, r.Health, when(r.SeenAt), rejected(r.LastReject))
				}
			})
		},
	}
	pageFlags(cmd, &page)
	return cmd
}

// slots is how many jobs a runner has at a time: what the daemon lets it have, and not more than its agent takes.
func slots(r *api.Runner) int {
	if c := r.Capabilities; c != nil && c.Resources != nil && c.Resources.Slots != nil {
		return min(r.Slots, int(*c.Resources.Slots))
	}
	return r.Slots
}

func rejected(r *api.Reject) string {
	if r == nil {
		return ""
	}
	return r.Reason
}

func (a *app) runnerShow() *cobra.Command {
	return &cobra.Command{
		Use: "show RUNNER", Short: "Show a runner, by name or id", Args: cobra.ExactArgs(1),
		Example: "  forgeyard runner show build-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			r, err := client.Runner(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print().Show(r, func(w io.Writer) { describeRunner(w, r) })
		},
	}
}

func describeRunner(w io.Writer, r *api.Runner) {
	console.Field(w, "Runner", r.Name)
	console.Field(w, "ID", r.ID)
	console.Field(w, "State", r.State)
	console.Field(w, "Pool", r.Pool)
	console.Field(w, "Trust", r.Trust)
	console.Field(w, "Labels", strings.Join(r.Labels, ", "))
	text := fmt.Sprint(slots(r))
	if slots(r) < r.Slots {
		text += fmt.Sprintf(", where it could have %d: its agent takes no more (max_parallel_jobs)", r.Slots)
	}
	console.Field(w, "Slots", text)
	console.Field(w, "Version", r.Version)
	console.Field(w, "Protocol", r.Protocol)
	console.Field(w, "Health", r.Health)
	for _, c := range r.Checks {
		console.Field(w, "  "+c.Kind, strings.TrimSpace(c.Status+" "+c.Detail))
	}
	if c := r.Capabilities; c != nil {
		console.Field(w, "System", strings.TrimSpace(c.OS+"/"+c.Arch+" "+c.System))
		console.Field(w, "Resources", amount(c.Resources))
		console.Field(w, "Features", strings.Join(c.Features, ", "))
		console.Field(w, "Toolchains", strings.Join(c.Toolchains, ", "))
	}
	if l := r.Load; l != nil {
		console.Field(w, "Free", amount(l.Free))
		console.Field(w, "Pressure", l.Pressure)
	}
	console.Field(w, "Attempts", strings.Join(r.Active, ", "))
	console.Field(w, "Last reject", rejected(r.LastReject))
	console.Field(w, "Last seen", when(r.SeenAt))
	if f := r.Refused; f != nil {
		console.Field(w, "Refused", when(f.At)+", "+f.Why)
	}
	if c := r.Certificate; c != nil {
		console.Field(w, "Certificate", c.Serial+", until "+when(c.ExpiresAt))
	}
}

// amount writes resources on one line.
func amount(r *api.Resources) string {
	if r == nil {
		return ""
	}
	var parts []string
	if r.CPU != nil {
		text, _ := r.CPU.MarshalJSON() // of a number; never fails
		parts = append(parts, string(text)+" cores")
	}
	for _, s := range []struct {
		name string
		size *api.Size
	}{{"memory", r.Memory}, {"disk", r.Disk}} {
		if s.size != nil {
			parts = append(parts, round(*s.size)+" "+s.name)
		}
	}
	if r.Slots != nil {
		parts = append(parts, fmt.Sprintf("%d slots", *r.Slots))
	}
	return strings.Join(parts, ", ")
}

// round writes a size in the unit that people would take for it.
func round(s api.Size) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, i := float64(s), 0
	for value >= 1024 && i < len(units)-1 {
		value, i = value/1024, i+1
	}
	return strings.TrimSuffix(fmt.Sprintf("%.1f", value), ".0") + units[i]
}

func (a *app) runnerWhy() *cobra.Command {
	return &cobra.Command{
		Use: "why RUNNER", Short: "Say why a runner gets no more jobs", Args: cobra.ExactArgs(1),
		Example: "  forgeyard runner why build-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			why, err := client.ExplainRunner(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			return a.print().Show(why, func(w io.Writer) { explainRunner(w, why) })
		},
	}
}

func explainRunner(w io.Writer, e *api.RunnerExplanation) {
	console.Field(w, "Why", e.Summary)
	for _, d := range e.Details {
		fmt.Fprintf(w, "\t%s\n", console.Cell(d))
	}
	console.Field(w, "Free", amount(e.Free))
	console.Field(w, "Held for", e.HeldFor)
	console.Field(w, "Last reject", rejected(e.LastReject))
	if len(e.Jobs) == 0 {
		return
	}
	fmt.Fprintln(w)
	console.Row(w, "JOB", "WHY NOT")
	for _, j := range e.Jobs {
		console.Row(w, j.Job, misses(j.Misses))
	}
}

// tokenFlags are what create and enroll-token have in common.
type tokenFlags struct {
	pool, trust string
	labels      []string
	slots       uint32
	expires     time.Duration
	out         string
}

func (t *tokenFlags) add(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&t.pool, "pool", "", "pool of the runner")
	f.StringVar(&t.trust, "trust", "", "class of the runner: trusted has trusted and untrusted runs, untrusted or protected only runs of that class (default trusted)")
	f.StringArrayVar(&t.labels, "label", nil, "label of the runner; repeatable")
	f.Uint32Var(&t.slots, "slots", 0, "most jobs at a time, if the agent takes as many (max_parallel_jobs)")
	f.DurationVar(&t.expires, "expires", 0, "how long the token can be used, at most 24h (default 15m)")
	f.StringVar(&t.out, "out", "", "file to write the token to, readable by you alone, instead of printing it")
}

// given returns the flags of numbers that were used.
func (t *tokenFlags) given(cmd *cobra.Command) (slots *uint32, expires *api.Duration) {
	if cmd.Flags().Changed("slots") {
		slots = &t.slots
	}
	if cmd.Flags().Changed("expires") {
		d := api.Duration(t.expires)
		expires = &d
	}
	return slots, expires
}

const tokenHelp = `
The token is good once and for a short time. It is a secret: on the machine, give it to
forgeyard-agent enroll on standard input or in a file, never on its command line.`

func (a *app) runnerCreate() *cobra.Command {
	var t tokenFlags
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a runner, and the token for its machine", Args: cobra.ExactArgs(1),
		Long:    "Make a runner before its machine comes, and print the enrolment token for that machine.\n" + tokenHelp,
		Example: "  forgeyard runner create build-7 --label ssd --slots 4 --out build-7.token",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			slots, expires := t.given(cmd)
			made, err := client.CreateRunner(cmd.Context(), &api.RunnerRequest{
				Name: args[0], Pool: t.pool, Trust: t.trust, Labels: t.labels, Slots: slots, ExpiresIn: expires,
			})
			if err != nil {
				return err
			}
			a.note("runner %s %s", made.Runner.Name, made.Runner.ID)
			return a.handOver(cmd.Context(), client, &made.Token, made, t.out)
		},
	}
	t.add(cmd)
	return cmd
}

func (a *app) enrollToken() *cobra.Command {
	var t tokenFlags
	var name string
	cmd := &cobra.Command{
		Use: "enroll-token", Short: "Make a token with which a machine makes itself a runner", Args: cobra.NoArgs,
		Long:    "Make a token with which one machine makes itself a runner.\n" + tokenHelp,
		Example: "  forgeyard runner enroll-token | ssh build-8 forgeyard-agent enroll --endpoint quic://ci.example.org:7443",
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			slots, expires := t.given(cmd)
			token, err := client.CreateToken(cmd.Context(), &api.TokenRequest{
				Name: name, Pool: t.pool, Trust: t.trust, Labels: t.labels, Slots: slots, ExpiresIn: expires,
			})
			if err != nil {
				return err
			}
			return a.handOver(cmd.Context(), client, token, token, t.out)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the runner; its machine's own where none is given")
	t.add(cmd)
	return cmd
}

// handOver gives a token to the user, in a file or on standard output, and says what it is for. answer is the whole of it,
// for JSON.
func (a *app) handOver(ctx context.Context, client *api.Client, t *api.EnrollmentToken, answer any, file string) error {
	if t.ExpiresAt != nil {
		a.note("token %s, good once until %s", t.ID, when(t.ExpiresAt))
	}
	if file != "" {
		if err := writeSecret(file, t.Token); err != nil {
			return fmt.Errorf("write the token: %w", err)
		}
		a.note("Bring that file to the machine, then there: forgeyard-agent enroll --endpoint %s --token-file %s", agentsAt(ctx, client), filepath.Base(file))
		return nil
	}
	if a.output == "json" {
		return a.print().Value(answer)
	}
	fmt.Fprintln(a.env.Stdout, t.Token)
	a.note("On the machine, with the token on standard input: forgeyard-agent enroll --endpoint %s", agentsAt(ctx, client))
	return nil
}

// agentsAt is the endpoint that agents need, with a word in its place where the daemon cannot know how it is called from
// elsewhere.
func agentsAt(ctx context.Context, client *api.Client) string {
	host, port := "HOST", "PORT"
	if s, err := client.TransportStatus(ctx); err == nil {
		if h, p, err := net.SplitHostPort(s.Listen); err == nil {
			port = p
			if ip, err := netip.ParseAddr(h); err == nil && !ip.IsUnspecified() {
				host = h
			}
		}
	}
	return "quic://" + net.JoinHostPort(host, port)
}

func (a *app) runnerVerb(verb api.RunnerVerb, short, done string) *cobra.Command {
	return &cobra.Command{
		Use: string(verb) + " RUNNER", Short: short, Args: cobra.ExactArgs(1),
		Example: "  forgeyard runner " + string(verb) + " build-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			r, err := client.SetRunner(cmd.Context(), args[0], verb)
			if err != nil {
				return err
			}
			return a.print().Show(r, func(w io.Writer) {
				text := "runner " + r.Name + ": " + done
				switch {
				case verb == api.RunnerResume && r.State == "draining": // its agent has not heard of it, or is drained by its owner
					text += ", once its agent does; see: forgeyard runner why " + r.Name
				case r.State != done:
					text += " (" + r.State + ")"
				}
				console.Row(w, text)
			})
		},
	}
}

func (a *app) runnerDelete() *cobra.Command {
	return &cobra.Command{
		Use: "delete RUNNER", Short: "Remove a runner that holds no job", Args: cobra.ExactArgs(1),
		Example: "  forgeyard runner disable build-1\n  forgeyard runner delete build-1",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := a.ask()
			if err != nil {
				return err
			}
			if err := client.DeleteRunner(cmd.Context(), args[0]); err != nil {
				return err
			}
			a.note("runner %s is deleted", args[0])
			return nil
		},
	}
}
