// Package agent is the command forgeyard-agent: its arguments, its settings, and what it shows of the agent that runs.
//
// It decides nothing: what the agent does stands in package runner, what it is made of in internal/agent. Enrolment tokens
// come on standard input or in a file and never on the command line. It starts no goroutine of its own.
package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/config"
	"github.com/forgeyard/forgeyard/internal/agent"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/runner/admin"
	"github.com/forgeyard/forgeyard/internal/runner/localstate"
	"github.com/forgeyard/forgeyard/internal/runner/objects"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Env is the world that the command runs in.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string // as os.Environ returns it
	Version        string
	Level          *slog.LevelVar // of the log; set from the settings, and again by Reload
}

// An app is one command under way.
type app struct {
	env     Env
	program *program.Program
	output  string

	file      string
	data      string
	endpoints []string
	noted     []string // by enrolment
	set       []string
	check     bool
	settings  config.Agent
	reload    *Reloader
}

// Main runs one command. reload hears of the settings in force, for SIGHUP; it may be nil.
func Main(ctx context.Context, p *program.Program, env Env, args []string, reload *Reloader) error {
	a := &app{env: env, program: p, reload: reload}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	return a.explain(root.ExecuteContext(ctx))
}

func (a *app) root() *cobra.Command {
	root := console.Group("forgeyard-agent", "Run jobs of a Forgeyard daemon on this machine",
		a.runCommand(), a.enrollCommand(), a.statusCommand(), a.capabilitiesCommand(), a.doctorCommand(),
		a.tell("drain", "Take no new jobs; those that run go on", admin.Agent.Drain, "takes no new jobs"),
		a.tell("resume", "Take jobs again", admin.Agent.Resume, "takes jobs again"),
		a.cleanupCommand(), console.Group("connection", "Look at the connection to the daemon", a.connectionCommand()), a.versionCommand())
	root.Long = `Run jobs of a Forgeyard daemon on this machine.

Exit codes: 0 stopped as asked, 1 failed or forced, 3 infrastructure, 64 wrong usage or settings,
77 the daemon refuses this runner for good, 78 another process speaks for this runner. Do not
restart after 64, 77 and 78.`
	root.Example = `  forgeyard-agent enroll --endpoint quic://ci.example.org:7443 --token-file token
  forgeyard-agent run --endpoint quic://ci.example.org:7443
  forgeyard-agent status`
	f := root.PersistentFlags()
	f.StringVar(&a.file, "config", "", "file with settings, see docs/configuration.md")
	f.StringVar(&a.data, "data", "", "data folder (data_dir)")
	f.StringArrayVar(&a.set, "set", nil, "one setting, as in log.level=debug; repeatable")
	f.StringVarP(&a.output, "output", "o", "table", "how results look: table or json")
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if a.output != "table" && a.output != "json" {
			return console.Usage("-o %s: use table or json", a.output)
		}
		return nil
	}
	console.Strict(root)
	return root
}

func (a *app) print() console.Printer {
	return console.Printer{Out: a.env.Stdout, Err: a.env.Stderr, JSON: a.output == "json"}
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
	if a.data != "" {
		path, err := filepath.Abs(a.data)
		if err != nil {
			return in, fmt.Errorf("--data: %w", err)
		}
		in.Flags = append(in.Flags, config.Override{Source: "--data", Key: "data_dir", Value: path})
	}
	if len(a.endpoints) > 0 {
		in.Flags = append(in.Flags, config.Override{Source: "--endpoint", Key: "control_plane.endpoints", Value: strings.Join(a.endpoints, ",")})
	}
	return in, nil
}

// load reads the settings.
func (a *app) load() error {
	in, err := a.input()
	if err != nil {
		return err
	}
	if a.settings, err = config.LoadAgent(in); err != nil {
		return program.Exit(program.CodeUsage, fmt.Errorf("the settings are wrong:\n%w", err))
	}
	if a.noted, err = agent.NotedEndpoints(a.settings.DataDir); err != nil {
		return err
	}
	return nil
}

// again are the flags that lead the next command to the same folder.
func (a *app) again() string {
	var flags string
	if a.file != "" {
		flags += " --config " + a.file
	}
	if a.data != "" {
		flags += " --data " + a.data
	}
	return flags
}

// options are the settings as the agent takes them.
func (a *app) options(log *slog.Logger) agent.Options {
	s := &a.settings
	o := agent.Options{
		State: s.DataDir, ServerName: s.ControlPlane.ServerName, Slots: s.MaxParallelJobs, Labels: s.Labels,
		Keep:    objects.Limits{MaxBytes: s.Cache.MaxBytes, MinFree: s.Cache.MinFree, MaxAge: s.Cache.MaxAge},
		Reserve: forge.Resources{CPU: s.Reserve.CPU, Memory: s.Reserve.Memory, Disk: s.Reserve.Disk},
		Policy:  s.Policy.Local(), Env: passed(s.Environment.Pass),
		Sandbox: agent.Sandbox{
			Need: !s.Policy.AllowUnconfined, ReadOnly: s.Sandbox.ReadOnly, Toolchains: s.Sandbox.Toolchains,
			Pool: s.Sandbox.Pool, UIDBase: s.Sandbox.UIDBase, Rootless: s.Sandbox.Rootless, DiskImages: s.Sandbox.DiskImages,
		},
		Grace: s.ShutdownGrace, Version: a.env.Version, Log: log,
	}
	for _, text := range s.ControlPlane.Endpoints {
		address, err := config.Endpoint(text)
		if err != nil {
			panic("settings that were validated: " + err.Error())
		}
		o.Endpoints = append(o.Endpoints, address)
	}
	if len(o.Endpoints) == 0 {
		o.Endpoints = a.noted
	}
	return o
}

// passed are the variables of the agent's own environment that every job gets (D12).
func passed(names []string) (env []forge.EnvVar) {
	for _, name := range names {
		if value := os.Getenv(name); value != "" {
			env = append(env, forge.EnvVar{Name: name, Value: value})
		}
	}
	return env
}

func (a *app) runCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "run", Short: "Run the agent until it is stopped", Args: cobra.NoArgs,
		Long: `Run the agent until it is stopped. The first SIGTERM or SIGINT lets running jobs finish and
then ends, the second ends at once; what was not sent of a log is sent after the next start.
SIGHUP reads the settings again and applies those that can change.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(); err != nil {
				return err
			}
			if a.check {
				a.print().Note("the settings are good")
				return nil
			}
			return a.run(cmd.Context())
		},
	}
	a.endpointFlag(cmd)
	cmd.Flags().BoolVar(&a.check, "check-config", false, "check the settings and end")
	return cmd
}

func (a *app) endpointFlag(cmd *cobra.Command) {
	cmd.Flags().StringArrayVar(&a.endpoints, "endpoint", nil, "daemon as quic://HOST:PORT; repeatable (control_plane.endpoints)")
}

func (a *app) run(ctx context.Context) (err error) {
	if err := a.endpointNamed(); err != nil {
		return err
	}
	out, err := openLog(a.settings.Log, a.env.Stderr)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	log, err := a.logger(out)
	if err != nil {
		return err
	}
	if a.reload != nil {
		a.reload.start(a, log)
	}
	o := a.options(log)
	if err := a.enrollFirst(ctx, o); err != nil {
		return err
	}
	if a.settings.Metrics.Listen != "" {
		o.Metrics = telemetry.NewMetrics()
	}
	stop, err := serveMetrics(a.settings.Metrics.Listen, o.Metrics, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	err = agent.Run(ctx, a.program.Force(), o)
	if none := (*agent.NoSandbox)(nil); errors.As(err, &none) {
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("%w. \"forgeyard-agent doctor\" tells what it lacks. "+
			"With policy.allow_unconfined=true the agent takes jobs that ask for plain processes, which can read and change whatever its user can", err))
	}
	return err
}

func (a *app) endpointNamed() error {
	if len(a.settings.ControlPlane.Endpoints) == 0 && len(a.noted) == 0 {
		return console.Usage("no daemon is named, and enrolment has noted none\nName one with --endpoint quic://HOST:PORT, or control_plane.endpoints in the settings")
	}
	return nil
}

// logger makes the log as the settings say.
func (a *app) logger(w io.Writer) (*slog.Logger, error) {
	format, err := telemetry.ParseFormat(a.settings.Log.Format)
	if err != nil {
		return nil, err
	}
	level, err := telemetry.ParseLevel(a.settings.Log.Level)
	if err != nil {
		return nil, err
	}
	a.env.Level.Set(level)
	return telemetry.NewLogger(w, a.env.Level, format), nil
}

// openLog opens the file that the settings name, or passes standard error on.
func openLog(l config.Log, stderr io.Writer) (io.WriteCloser, error) {
	if l.File == "" {
		return unclosed{stderr}, nil
	}
	return telemetry.OpenFile(l.File, int64(l.MaxSize), l.Keep)
}

// unclosed is a writer that belongs to somebody else.
type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// enrollFirst enrols an agent that has no certificate and was given a token.
func (a *app) enrollFirst(ctx context.Context, o agent.Options) error {
	file := string(a.settings.ControlPlane.TokenFile)
	if file == "" {
		return nil
	}
	if _, ok, err := agent.Enrolled(o.State); ok || err != nil {
		return err
	}
	token, err := trust.ReadTokenFile(file)
	if err != nil {
		return fmt.Errorf("control_plane.token_file: %w", err)
	}
	defer token.Wipe()
	_, err = agent.Enroll(ctx, o, token, hostName())
	return err
}

// hostName is what the daemon may call the runner; its identity is another one (07§203).
func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return ""
	}
	return name
}

func (a *app) enrollCommand() *cobra.Command {
	var file, name string
	cmd := &cobra.Command{
		Use: "enroll", Short: "Make this machine a runner, with a token from the daemon", Args: cobra.NoArgs,
		Long: `Make this machine a runner, with a token from "forgeyard runner enroll-token". The token comes
in a file or on standard input, never on the command line, where others could read it.`,
		Example: `  forgeyard-agent enroll --endpoint quic://ci.example.org:7443 --token-file token
  forgeyard runner enroll-token | ssh build-8 forgeyard-agent enroll --endpoint quic://ci.example.org:7443`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.load(); err != nil {
				return err
			}
			return a.enroll(cmd.Context(), file, name)
		},
	}
	a.endpointFlag(cmd)
	cmd.Flags().StringVar(&file, "token-file", "", "file with the token; without it the token is read from standard input")
	cmd.Flags().StringVar(&name, "name", hostName(), "name of the runner, where the token does not say")
	return cmd
}

func (a *app) enroll(ctx context.Context, file, name string) error {
	o := a.options(telemetry.NewLogger(a.env.Stderr, slog.LevelWarn, telemetry.Text))
	if err := a.endpointNamed(); err != nil {
		return err
	}
	token, err := a.token(file)
	if err != nil {
		return err
	}
	defer token.Wipe()
	id, err := agent.Enroll(ctx, o, token, name)
	if err != nil {
		return err
	}
	a.print().Note("enrolled as runner %v in %s\nNow start it: forgeyard-agent run%s", id.Runner(), o.State, a.again())
	return nil
}

func (a *app) token(file string) (trust.Token, error) {
	if file != "" {
		token, err := trust.ReadTokenFile(file)
		if err != nil {
			return trust.Token{}, program.Exit(program.CodeAuth, fmt.Errorf("--token-file: %w", err))
		}
		return token, nil
	}
	if telemetry.IsTerminal(a.env.Stderr) {
		a.print().Note("Enrolment token:")
	}
	token, err := trust.ReadToken(a.env.Stdin)
	if err != nil {
		return trust.Token{}, program.Exit(program.CodeAuth, fmt.Errorf("standard input: %w", err))
	}
	return token, nil
}

// explain adds to an error what to do about it, and the code to end with.
func (a *app) explain(err error) error {
	var exit *program.ExitError
	var refused *enroll.Refused
	var unreached *agent.UnreachedError
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case errors.Is(err, trust.ErrNotEnrolled):
		return program.Exit(program.CodeUsage, fmt.Errorf("%w\nEnrol it first: forgeyard-agent enroll --endpoint quic://HOST:PORT --token-file FILE", err))
	case errors.Is(err, localstate.ErrInUse):
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("another agent runs on the folder %s\nSee what it does: forgeyard-agent status%s; or use another folder: --data DIR", a.settings.DataDir, a.again()))
	case errors.Is(err, admin.ErrNotRunning):
		return fmt.Errorf("%w\nStart it: forgeyard-agent run%s", err, a.again())
	case errors.Is(err, agent.ErrEnrolled):
		return fmt.Errorf("%w (%s)\nFor another runner use another folder: --data DIR", err, a.settings.DataDir)
	case errors.As(err, &refused):
		return program.Exit(program.CodeAuth, fmt.Errorf("%w\nMake a new token: forgeyard runner enroll-token", err))
	case errors.As(err, &unreached):
		code := program.CodeInfrastructure
		if unreached.Stranger() {
			code = program.CodeAuth
		}
		if mend := unreached.Mend(); mend != "" {
			err = fmt.Errorf("%w\n%s", err, mend)
		}
		return program.Exit(code, err)
	case disk.Unusable(err):
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("%w\nUse another folder: --data DIR", err))
	}
	return err
}
