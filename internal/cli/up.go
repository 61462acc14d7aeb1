package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

func (a *app) upCommand() *cobra.Command {
	var listen, level string
	var flags localFlags
	cmd := &cobra.Command{
		Use: "up", Short: "Run daemon and agent in this process until it is stopped", Args: cobra.NoArgs,
		Long: `Run a daemon and an agent in this process until it is stopped. The commands of the same
user find it by its data folder, and others by --listen with the token in admin.token there.

The first signal lets running jobs finish, the second ends them.`,
		Example: "  forgeyard up --listen 127.0.0.1:7480\n  forgeyard runs list",
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, err := a.logger(level)
			if err != nil {
				return err
			}
			return a.up(cmd.Context(), listen, log, &flags)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "address of the HTTP API; without it there is only the socket in the data folder")
	cmd.Flags().StringVar(&level, "log-level", "warn", "what to report: debug, info, warn or error")
	flags.add(cmd.Flags())
	return cmd
}

func (a *app) logger(level string) (*slog.Logger, error) {
	l, err := telemetry.ParseLevel(level)
	if err != nil {
		return nil, console.Usage("--log-level: %v", err)
	}
	return telemetry.NewLogger(a.env.Stderr, l, telemetry.Auto), nil
}

func (a *app) up(ctx context.Context, listen string, log *slog.Logger, flags *localFlags) error {
	data, err := a.dataDir()
	if err != nil {
		return err
	}
	if endpoint := a.env.Local.Find(data); endpoint != "" {
		return program.Exit(program.CodeFailed, fmt.Errorf("another process serves %s already, at %s", data, endpoint))
	}
	local := LocalOptions{Data: data, Listen: listen, Log: log, Stays: true, Orphan: a.orphan}
	if err := flags.into(&local); err != nil {
		return err
	}
	if err := a.allow(&local); err != nil {
		return err
	}
	local.Unconfined = func(why error) {
		a.note("jobs run unconfined here, as plain processes of your user: %v", why)
	}
	return a.ownFailed(data, offerUnsandboxed(a.env.Local.Run(ctx, a.program.Force(), local, func(serving context.Context, endpoint string) error {
		fmt.Fprintln(a.env.Stdout, "ready", endpoint)
		select {
		case <-ctx.Done():
			a.note("stopping; running jobs may finish, a second signal ends them")
		case <-serving.Done():
		}
		return nil
	})))
}

// versionInfo is the answer of version.
type versionInfo struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"`
	Server  string `json:"server,omitempty"`
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Show the version of this program, and of the daemon if one is named", Args: cobra.NoArgs,
		Example: "  forgeyard version",
		RunE: func(cmd *cobra.Command, _ []string) error {
			v := versionInfo{Version: a.env.Version, Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH}
			client, err := a.connect()
			if err != nil {
				return err
			}
			if client != nil {
				server, err := client.Version(cmd.Context())
				if err != nil {
					return err
				}
				v.Server = server.Version
			}
			return a.print().Show(v, func(w io.Writer) {
				console.Field(w, "forgeyard", v.Version)
				console.Field(w, "go", v.Go)
				console.Field(w, "system", v.System)
				console.Field(w, "server", v.Server)
			})
		},
	}
}
