package agent

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/admin"
)

// asking returns a command that asks the agent which runs on the data folder.
func (a *app) asking(use, short string, ask func(ctx context.Context, client *admin.Client) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(); err != nil {
				return err
			}
			client := admin.NewClient(a.settings.DataDir)
			defer client.Close()
			return ask(cmd.Context(), client)
		},
	}
}

func (a *app) statusCommand() *cobra.Command {
	return a.asking("status", "Show what the agent on this machine does", func(ctx context.Context, client *admin.Client) error {
		s, err := client.Status(ctx)
		if err != nil {
			return err
		}
		return a.print().Show(s, func(w io.Writer) { describe(w, s) })
	})
}

func describe(w io.Writer, s admin.Status) {
	state := s.State
	if s.Stopping {
		state += ", stopping"
	}
	console.Field(w, "Runner", s.Runner)
	console.Field(w, "State", state)
	console.Field(w, "Session", s.Session)
	console.Field(w, "Version", s.Version)
	console.Field(w, "Daemon", strings.TrimSpace(s.Connection.Endpoint+" "+s.Connection.State))
	console.Field(w, "Jobs", fmt.Sprintf("%d of %d", len(s.Attempts), s.Total.Slots))
	console.Field(w, "Free", fmt.Sprintf("%s cores, %v memory, %v disk", forge.MilliCPU(s.Free.MilliCPU), round(s.Free.Memory), round(s.Free.Disk)))
	console.Field(w, "Pressure", s.Pressure)
	console.Field(w, "In use", fmt.Sprintf("%d trees, %d objects to deliver; %d workspaces to remove", s.InUse.Trees, s.InUse.Objects, s.InUse.Workspaces))
	console.Field(w, "Certificate", "until "+s.Certificate.Local().Format(time.DateTime))
	for _, file := range s.SetAside {
		console.Field(w, "Set aside", file)
	}
	if len(s.Attempts) == 0 {
		return
	}
	fmt.Fprintln(w)
	console.Row(w, "ATTEMPT", "JOB", "STATE", "LEASE")
	for _, t := range s.Attempts {
		console.Row(w, t.ID, t.Job, t.State, time.Duration(t.LeaseFor*float64(time.Second)).Round(time.Second).String())
	}
}

// round keeps the digits of a size that people look at.
func round(n uint64) forge.Bytes {
	if n >= uint64(forge.GiB) {
		return forge.Bytes(n) / forge.GiB * forge.GiB
	}
	return forge.Bytes(n) / forge.MiB * forge.MiB
}

func (a *app) capabilitiesCommand() *cobra.Command {
	return a.asking("capabilities", "Show what the agent says that this machine can do", func(ctx context.Context, client *admin.Client) error {
		c, err := client.Capabilities(ctx)
		if err != nil {
			return err
		}
		return a.print().Show(c, func(w io.Writer) { capabilities(w, c) })
	})
}

func capabilities(w io.Writer, c forge.Capabilities) {
	console.Field(w, "System", c.Platform.OS+"/"+c.Platform.Arch)
	console.Field(w, "Resources", c.Resources.String())
	for _, s := range c.Sandboxes {
		console.Field(w, "Sandbox", strings.TrimSpace(s.Kind.String()+" "+strings.Join(s.Levels, ", ")))
	}
	for _, t := range c.Toolchains {
		console.Field(w, "Toolchain", strings.TrimSpace(t.ID+" "+t.Version))
	}
	console.Field(w, "Labels", strings.Join(c.Labels, ", "))
	console.Field(w, "Features", strings.Join(c.Features, ", "))
	console.Field(w, "Digest", c.Digest().String())
}

func (a *app) connectionCommand() *cobra.Command {
	return a.asking("status", "Show the connection to the daemon", func(ctx context.Context, client *admin.Client) error {
		s, err := client.Status(ctx)
		if err != nil {
			return err
		}
		c := s.Connection
		return a.print().Show(c, func(w io.Writer) {
			console.Field(w, "Daemon", c.Endpoint)
			console.Field(w, "State", c.State)
			console.Field(w, "Protocol", c.Protocol)
			if !c.Since.IsZero() {
				console.Field(w, "Since", c.Since.Local().Format(time.DateTime))
			}
			console.Field(w, "Connections so far", fmt.Sprint(c.Sequence))
			console.Field(w, "Last close", c.LastClose)
			console.Field(w, "Last error", c.LastError)
		})
	})
}

// tell returns a command that tells the agent to do something.
func (a *app) tell(use, short string, do func(admin.Agent, context.Context) error, done string) *cobra.Command {
	return a.asking(use, short, func(ctx context.Context, client *admin.Client) error {
		if err := do(client, ctx); err != nil {
			return err
		}
		a.print().Note("the agent %s", done)
		return nil
	})
}

func (a *app) cleanupCommand() *cobra.Command {
	return a.asking("cleanup", "Remove what no job needs any more", func(ctx context.Context, client *admin.Client) error {
		c, err := client.CleanUp(ctx)
		if err != nil {
			return err
		}
		if err := a.print().Show(c, func(w io.Writer) { fmt.Fprintf(w, "removed %d workspaces\n", c.Removed) }); err != nil {
			return err
		}
		if c.Problem != "" {
			return fmt.Errorf("not all could be removed: %s", c.Problem)
		}
		return nil
	})
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(a.env.Stdout, "forgeyard-agent %s %s %s/%s\n", a.env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}
