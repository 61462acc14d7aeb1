// Package daemon is the command forgeyard-daemon: its arguments and settings. What the daemon does stands in
// internal/daemon.
//
// It starts one goroutine, which tells people where the daemon can be reached once it is ready, and joins it.
package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/config"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/daemon"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Env is the world that the command runs in.
type Env struct {
	Stdout, Stderr io.Writer
	Environ        []string // as os.Environ returns it
	Version        string
	Level          *slog.LevelVar // of the log; set from the settings, and again by a reload
}

// An app is one command under way.
type app struct {
	env    Env
	reload *Reloader

	file, data, listen, http string
	names, set               []string
	check                    bool
	settings                 config.Daemon
}

// Main runs one command. reload hears of the settings in force, for SIGHUP.
func Main(ctx context.Context, env Env, args []string, reload *Reloader) error {
	a := &app{env: env, reload: reload}
	version := &cobra.Command{
		Use: "version", Short: "Show the version of this program", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			fmt.Fprintf(env.Stdout, "forgeyard-daemon %s %s %s/%s\n", env.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	root := console.Group("forgeyard-daemon", "Keep the runs of a Forgeyard cluster and give their jobs to agents", a.serveCommand(), version)
	root.Example = "  forgeyard-daemon serve --data /var/lib/forgeyard\n  forgeyard-daemon serve --config daemon.yaml --check-config"
	console.Strict(root)
	root.SetArgs(args)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	return a.explain(root.ExecuteContext(ctx))
}

func (a *app) serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the daemon until it is stopped", Args: cobra.NoArgs,
		Long: `Run the daemon until it is stopped. Once it takes requests it prints where it can be reached,
the file with the administrator's token, and the fingerprint of its certificate authority,
which is made at the first start.

SIGTERM or SIGINT stops it in order: jobs go on at their agents, which come back to the next
one. SIGHUP reads the settings again and applies those that can change.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(); err != nil {
				return err
			}
			if a.check {
				fmt.Fprintln(a.env.Stderr, "the settings are good")
				return nil
			}
			return a.serve(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&a.file, "config", "", "file with settings, see docs/configuration.md")
	f.BoolVar(&a.check, "check-config", false, "check the settings and end")
	f.StringVar(&a.data, "data", "", "data folder (data_dir)")
	f.StringVar(&a.listen, "listen", "", "HOST:PORT for agents, UDP (agent_transport.listen)")
	f.StringArrayVar(&a.names, "name", nil, "name or address by which agents reach the daemon; repeatable (agent_transport.names)")
	f.StringVar(&a.http, "http-listen", "", "HOST:PORT of the HTTP API (http.listen)")
	f.StringArrayVar(&a.set, "set", nil, "one setting, as in log.level=debug; repeatable")
	return cmd
}

// input is where settings come from.
func (a *app) input() (config.Input, error) {
	in := config.Input{File: a.file, Environ: a.env.Environ}
	for _, text := range a.set {
		o, err := config.ParseOverride("--set", text)
		if err != nil {
			return in, console.Usage("%v", err)
		}
		in.Flags = append(in.Flags, o)
	}
	data := a.data
	if data != "" {
		var err error
		if data, err = filepath.Abs(data); err != nil {
			return in, fmt.Errorf("--data: %w", err)
		}
	}
	for _, o := range []config.Override{
		{Source: "--data", Key: "data_dir", Value: data},
		{Source: "--listen", Key: "agent_transport.listen", Value: a.listen},
		{Source: "--name", Key: "agent_transport.names", Value: strings.Join(a.names, ",")},
		{Source: "--http-listen", Key: "http.listen", Value: a.http},
	} {
		if o.Value != "" {
			in.Flags = append(in.Flags, o)
		}
	}
	return in, nil
}

// load reads the settings.
func (a *app) load() error {
	in, err := a.input()
	if err != nil {
		return err
	}
	if a.settings, err = config.LoadDaemon(in); err != nil {
		return program.Exit(program.CodeUsage, fmt.Errorf("the settings are wrong:\n%w", err))
	}
	_, err = configuration(a.settings)
	return err
}

// configuration is what the settings say, as the daemon takes it.
func configuration(s config.Daemon) (daemon.Config, error) {
	terms, err := termsOf(s.AgentTransport)
	if err != nil {
		return daemon.Config{}, console.Usage("the settings are wrong:\n%v", err)
	}
	return daemon.Config{
		Dir: s.DataDir, Listen: s.AgentTransport.Listen, Names: s.AgentTransport.Names, HTTP: s.HTTP.Listen,
		Policy: s.Lease.Policy(), Objects: daemon.ObjectLimits{MaxBytes: s.CAS.MaxBytes, MinFree: s.CAS.MinFree}, Terms: terms,
	}, nil
}

// termsOf narrows what this build speaks to what the settings allow (09§280).
func termsOf(t config.AgentTransport) (protocol.Terms, error) {
	terms := protocol.OwnTerms()
	var kept protocol.Ranges
	for _, r := range terms.Versions {
		if low := t.ProtocolMin; low != (config.Protocol{}) {
			if r.Major < low.Major {
				continue
			}
			if r.Major == low.Major {
				r.MinMinor = max(r.MinMinor, low.Minor)
			}
		}
		if high := t.ProtocolMax; high != (config.Protocol{}) {
			if r.Major > high.Major {
				continue
			}
			if r.Major == high.Major {
				r.MaxMinor = min(r.MaxMinor, high.Minor)
			}
		}
		if r.MinMinor <= r.MaxMinor {
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return terms, fmt.Errorf("agent_transport.protocol_min and protocol_max leave no version: this release speaks %v", terms.Versions)
	}
	terms.Versions = kept
	return terms, nil
}

func (a *app) serve(ctx context.Context) (err error) {
	out, err := a.openLog()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	cfg, err := configuration(a.settings)
	if err != nil {
		return err
	}
	format, err := telemetry.ParseFormat(a.settings.Log.Format)
	if err != nil {
		return err
	}
	a.setLevel(a.settings.Log.Level)
	cfg.Version, cfg.Log = a.env.Version, telemetry.NewLogger(out, a.env.Level, format)
	d, err := daemon.New(cfg)
	if err != nil {
		return err
	}
	a.reload.start(a, d, cfg.Log)
	ended := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() { a.tell(d, ended) })
	err = d.Run(ctx)
	close(ended)
	telling.Wait()
	return err
}

func (a *app) setLevel(text string) {
	if level, err := telemetry.ParseLevel(text); err == nil { // it was validated
		a.env.Level.Set(level)
	}
}

// openLog opens the file that the settings name, or passes standard error on.
func (a *app) openLog() (io.WriteCloser, error) {
	l := a.settings.Log
	if l.File == "" {
		return unclosed{a.env.Stderr}, nil
	}
	return telemetry.OpenFile(l.File, int64(l.MaxSize), l.Keep)
}

// unclosed is a writer that belongs to somebody else.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// tell prints where the daemon can be reached, once it can.
func (a *app) tell(d *daemon.Daemon, ended <-chan struct{}) {
	select {
	case <-ended:
		return
	case <-d.Ready():
	}
	at := d.Addresses()
	for _, line := range [][2]string{
		{"agents", "quic://" + at.Agents},
		{"http", at.HTTP},
		{"socket", at.Socket},
		{"token", at.TokenFile},
		{"fingerprint", at.Fingerprint},
		{"ready", at.Cluster},
	} {
		if line[1] != "" {
			fmt.Fprintln(a.env.Stdout, line[0], line[1])
		}
	}
}

// explain adds to an error what to do about it, and the code to end with.
func (a *app) explain(err error) error {
	var exit *program.ExitError
	var taken *daemon.AddressError
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case errors.Is(err, store.ErrLocked):
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("another daemon uses the folder %s\nStop that one, or use another folder: --data DIR", a.settings.DataDir))
	case errors.As(err, &taken):
		flag := "--http-listen"
		if taken.For == daemon.ForAgents {
			flag = "--listen"
		}
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("%w\nMake it free, or use another: %s HOST:PORT", taken, flag))
	case disk.Unusable(err):
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("%w\nUse another folder: --data DIR", err))
	}
	return err
}

// A Reloader applies settings that may change while the daemon runs. Its methods may be called by several goroutines.
type Reloader struct {
	mu     sync.Mutex
	app    *app // nil until the daemon runs
	daemon *daemon.Daemon
	log    *slog.Logger
}

func (r *Reloader) start(a *app, d *daemon.Daemon, log *slog.Logger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.app, r.daemon, r.log = a, d, log
}

// Reload reads the settings again, applies what can be applied, and says what cannot. Settings that are wrong change
// nothing.
func (r *Reloader) Reload(context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.app == nil {
		return
	}
	restart, err := r.reload()
	if err != nil {
		r.log.Error("the settings were not reloaded", telemetry.KeyError, err)
		return
	}
	r.log.Info("the settings were reloaded", "level", r.app.settings.Log.Level)
	if len(restart) > 0 {
		r.log.Warn("some settings change only with a restart", "changed", strings.Join(restart, ","))
	}
}

func (r *Reloader) reload() (restart []string, err error) {
	in, err := r.app.input()
	if err != nil {
		return nil, err
	}
	next, err := config.LoadDaemon(in)
	if err != nil {
		return nil, err
	}
	cfg, err := configuration(next)
	if err != nil {
		return nil, err
	}
	_, restart = config.Changes(&r.app.settings, &next)
	r.app.setLevel(next.Log.Level)
	r.app.settings.Log.Level = next.Log.Level
	_, err = r.daemon.Reload(cfg)
	return restart, err
}
