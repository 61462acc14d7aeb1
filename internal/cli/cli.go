// Package cli is the command forgeyard: its arguments, what it asks the daemon for, and how the answers look.
//
// It decides nothing about runs and runners: everything goes through the HTTP API, also to the daemon that it starts in
// its own process where no server is configured (package standalone). What comes from a workload or a peer is made safe
// before a terminal sees it; enrolment tokens never stand on a command line. How a run looks on a terminal is package
// display's matter.
//
// Results go to standard output and everything about them to standard error, so that a pipe gets the result alone. The
// exit codes are those of package program: 0 done, 1 failed, 2 cancelled, 3 infrastructure, 4 not authenticated, 8 no
// result yet, 64 usage, or a pipeline file that cannot run.
//
// Main runs in the goroutine of its caller. Those that watch a run while it is followed, read its logs and draw on the terminal
// are joined before its command returns.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/display/terminal"
	"github.com/forgeyard/forgeyard/internal/program"
)

// Env is the world that a command runs in.
type Env struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Version        string // of this program
	// Local starts a daemon and an agent in this process; see Local.
	Local Local
}

// Main runs one command. Its error has been made ready for people, and carries an exit code.
func Main(ctx context.Context, p *program.Program, env Env, args []string) error {
	a := &app{env: env, program: p}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	if a.client != nil {
		a.client.Close()
	}
	if a.leave != nil {
		err = errors.Join(err, a.leave())
	}
	return a.explain(err)
}

// An app is one command under way.
type app struct {
	env     Env
	program *program.Program
	client  *api.Client // nil until it is needed
	streams streams
	screen  atomic.Pointer[terminal.Terminal] // what is drawn on the terminal now; nil: nothing

	here  bool         // the agent that is asked is one of this user on this machine
	own   bool         // the daemon that is asked runs in this process, and ends with it
	looks bool         // it has no agent besides
	leave func() error // stops it; nil: there is none that the command must stop

	server    string // --server
	tokenFile string // --token-file
	context   string // --context
	data      string // --data
	output    string // --output
}

// root builds the tree of commands.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "forgeyard",
		Short: "Run jobs on machines of your own",
		Long: `Forgeyard runs the jobs of a build on machines of your own.

Without a server, "forgeyard run" does everything in one process on this machine. With
--server, FORGEYARD_SERVER or a saved context it asks a daemon.

Exit codes: 0 success, 1 the run failed, 2 cancelled, 3 infrastructure, 4 not authenticated,
8 no result yet, 64 wrong usage or a pipeline file that cannot run.`,
		Example: `  forgeyard run -- make test                   run a command here
  forgeyard context add work --server https://ci.example.org --token-file ~/work.token
  forgeyard run --label linux -- make test     run it on a machine of that daemon
  forgeyard runs list
  forgeyard job why 01JB4Z                     why a job waits, by the first characters of its id`,
		Args: cobra.NoArgs,
		PersistentPreRunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Name() == cobra.ShellCompRequestCmd || cmd.Name() == cobra.ShellCompNoDescRequestCmd {
				return nil // what is typed is not complete yet
			}
			if cmd.Name() != "run" && slices.Contains(args, "") { // a variable of a script that is not set, mostly
				return console.Usage("an argument is empty\nSee: %s --help", cmd.CommandPath())
			}
			if a.output != "table" && a.output != "json" {
				return console.Usage("-o %s: use table or json", a.output)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	flags := root.PersistentFlags()
	flags.StringVar(&a.server, "server", "", "daemon to ask: http://HOST:PORT, https://HOST or unix:///PATH (FORGEYARD_SERVER)")
	flags.StringVar(&a.tokenFile, "token-file", "", "file with the bearer token (FORGEYARD_TOKEN_FILE)")
	flags.StringVar(&a.context, "context", "", "saved server to ask, see \"forgeyard context\"")
	flags.StringVar(&a.data, "data", "", "folder of the daemon in this process, where no server is named")
	flags.StringVarP(&a.output, "output", "o", "table", "how results look: table or json")
	root.AddCommand(a.runCommand(), a.runsCommand(), a.logsCommand(), a.jobCommand(), a.artifactCommand(), a.cacheCommand(), a.casCommand(), a.secretCommand(), a.tokenCommand(), a.runnerCommand(), a.transportCommand(),
		a.contextCommand(), a.upCommand(), a.doctorCommand(), a.toolchainCommand(), a.initCommand(), a.lintCommand(), a.planCommand(), a.completionCommand(), a.versionCommand())
	a.complete(root)
	console.Strict(root)
	return root
}

// explain turns an error into what a person can act on: what, why, and the next command.
func (a *app) explain(err error) error {
	var exit *program.ExitError
	var p *api.Problem
	switch {
	case err == nil || errors.As(err, &exit):
		return err
	case errors.As(err, &p):
		code, next := a.advice(p)
		text := console.Plain(p.Error())
		if next != "" {
			text += "\n" + next
		}
		return program.Exit(code, errors.New(text))
	case strings.HasPrefix(err.Error(), "unknown command"):
		return console.Usage("%v\nSee: forgeyard --help", err)
	}
	return err
}

// advice returns the exit code of a problem and what to do about it.
func (a *app) advice(p *api.Problem) (code int, next string) {
	switch p.Code {
	case api.CodeTokenExpired, api.CodeTokenRevoked, api.CodeForbidden:
		if a.tokenFile != "" {
			return program.CodeAuth, fmt.Sprintf("The token was read from %s.", a.tokenFile)
		}
		return program.CodeAuth, ""
	case api.CodeUnauthenticated:
		if a.tokenFile != "" {
			return program.CodeAuth, fmt.Sprintf("The token in %s is none that this daemon takes. On the daemon's machine there is one in its data folder, admin.token, and it makes others: forgeyard token create.", a.tokenFile)
		}
		return program.CodeAuth, "Name a file with a token: --token-file FILE, or FORGEYARD_TOKEN_FILE. On the daemon's machine it is admin.token in its data folder."
	case api.CodeUnreachable, api.CodeUnreadableAnswer:
		return program.CodeInfrastructure, fmt.Sprintf("Is %s the daemon's address, and does it run? Check: forgeyard transport doctor", a.serverName())
	case api.CodeNoRoute, api.CodeMethod:
		return program.CodeInfrastructure, fmt.Sprintf("%s does not know what this command asks: it is of another release, and this is %s. Install the same on both.", a.serverName(), a.env.Version)
	case api.CodeUnavailable, api.CodeInternal, api.CodeUnknownOutcome:
		return program.CodeInfrastructure, "Check the daemon: forgeyard transport doctor"
	case api.CodeNoRoom:
		return program.CodeInfrastructure, "See how much there is: forgeyard cas stat"
	case api.CodeAmbiguous:
		return program.CodeUsage, "Write more of the id."
	case api.CodeNotFound:
		return program.CodeFailed, "See what there is: forgeyard runs list, forgeyard runner list"
	case api.CodeMalformed, api.CodeInvalid, api.CodeTooLarge:
		return program.CodeUsage, ""
	}
	return program.CodeFailed, ""
}

func (a *app) serverName() string {
	if a.server == "" {
		return "that"
	}
	return a.server
}

// errHomeless means that the environment names no place for our files.
var errHomeless = errors.New("no folder to use")

// configDir is where contexts are kept.
func (a *app) configDir() (string, error) { return a.base("XDG_CONFIG_HOME", ".config") }

// dataDir is where the daemon in this process keeps what it has.
func (a *app) dataDir() (string, error) {
	if a.data != "" {
		return filepath.Abs(a.data)
	}
	dir, err := a.base("XDG_DATA_HOME", ".local/share")
	if err != nil {
		return "", program.Exit(program.CodeInfrastructure, fmt.Errorf("%w, or name one: --data DIR", err))
	}
	return dir, nil
}

// ownFailed is the error of a daemon and an agent in this process that did not come up, or did not stay.
func (a *app) ownFailed(data string, err error) error {
	var exit *program.ExitError
	var problem *api.Problem
	var by *program.Signal
	if err == nil || errors.As(err, &exit) || errors.As(err, &problem) || errors.As(err, &by) || errors.Is(err, context.Canceled) {
		return err
	}
	return program.Exit(program.CodeInfrastructure, fmt.Errorf("the daemon and the agent in this process: %w\nThey keep what they have in %s. To use another folder: --data DIR", err, data))
}

// base returns our folder below a folder of the XDG specification.
func (a *app) base(variable, below string) (string, error) {
	dir := a.env.Getenv(variable)
	if dir == "" {
		home := a.env.Getenv("HOME")
		if home == "" {
			var err error
			if home, err = os.UserHomeDir(); err != nil {
				return "", fmt.Errorf("%w: set %s or HOME", errHomeless, variable)
			}
		}
		dir = filepath.Join(home, filepath.FromSlash(below))
	}
	return filepath.Abs(filepath.Join(dir, "forgeyard"))
}
