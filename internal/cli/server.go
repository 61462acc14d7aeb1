package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// Local starts a daemon and an agent in this process.
type Local interface {
	// Find returns the endpoint of the process that owns a data folder, or "" if nobody does.
	Find(data string) string
	// Run starts both, calls use with the daemon's endpoint once they are ready, and stops them when use has returned and the
	// runs of other processes have ended. The end of ctx ends that waiting and nothing else: an interrupt cancels a run, and
	// daemon and agent must live on to carry that out. force ends all waiting for jobs. The context of use ends when daemon
	// or agent do; it never ends where another process has taken the folder meanwhile, and that one is to be asked. The error
	// of use comes before its own.
	Run(ctx, force context.Context, o LocalOptions, use func(ctx context.Context, endpoint string) error) error
	// Look starts a daemon without an agent in this process, for commands about what a data folder holds, and returns its
	// endpoint. Its caller calls leave, which stops it; no job starts meanwhile. Another process that owns the folder by then
	// is used in its place. The endpoint is "" where there is no such folder.
	Look(ctx context.Context, o LocalOptions) (endpoint string, leave func() error, err error)
}

// LocalOptions are how the daemon and the agent in this process are run.
type LocalOptions struct {
	Data     string
	Listen   string // of the HTTP API; empty: only the socket in Data
	Log      *slog.Logger
	ReadOnly []string // files and folders of this machine that jobs may read besides the system's, absolute
	// Toolchains are folders that jobs may read, too, whose programs come first in their PATH; Env is for each step (D12).
	Toolchains []string
	Env        []forge.EnvVar
	// AllowUnsandboxed goes on where jobs cannot be confined on this machine. Without it Run returns a *NoSandbox there, and
	// does not call use.
	AllowUnsandboxed bool
	Unconfined       func(why error) // called before use where jobs cannot be confined; may be nil
	// Stays says that use does not end by itself. Where such an owner of the folder is killed, the next one goes on with
	// its runs; those of any other end with it.
	Stays  bool
	Orphan func(run string) // called for each of those others that the last owner left; may be nil
}

// connect returns a client of the daemon that was named, by flag, environment or saved context; nil if none was.
func (a *app) connect() (*api.Client, error) {
	if a.client != nil {
		return a.client, nil
	}
	if err := a.resolve(); err != nil || a.server == "" {
		return nil, err
	}
	return a.dial(a.server)
}

// resolve finds out which server is meant.
func (a *app) resolve() error {
	saved, err := a.contexts()
	if err != nil {
		return err
	}
	name := a.context
	if a.server == "" && name == "" {
		a.server = a.env.Getenv("FORGEYARD_SERVER")
	}
	if a.server == "" && name == "" {
		name = saved.Current
	}
	if a.server == "" && name != "" {
		c, ok := saved.find(name)
		if !ok {
			return console.Usage("there is no context %q\nSee what there is: forgeyard context list", name)
		}
		a.server = c.Server
		if a.tokenFile == "" {
			a.tokenFile = c.TokenFile
		}
	}
	if a.tokenFile == "" {
		a.tokenFile = a.env.Getenv("FORGEYARD_TOKEN_FILE")
	}
	return nil
}

func (a *app) dial(endpoint string) (*api.Client, error) {
	var token forge.Secret
	if a.tokenFile != "" {
		var err error
		if token, err = api.ReadToken(a.tokenFile); err != nil {
			return nil, program.Exit(program.CodeAuth, err)
		}
	}
	client, err := api.NewClient(endpoint, api.Options{Token: token, UserAgent: "forgeyard/" + a.env.Version, Stream: a.streamed})
	if err != nil {
		return nil, console.Usage("%v", err)
	}
	a.client = client
	return client, nil
}

// ask returns a client for a command about runs and runners that are there already: of the daemon that was named, or of the
// one that owns the data folder of this user. Where nobody does, one is started for this command.
func (a *app) ask() (*api.Client, error) {
	client, err := a.connect()
	if client != nil || err != nil {
		return client, err
	}
	data, err := a.dataDir()
	if err != nil {
		return nil, err
	}
	if endpoint := a.env.Local.Find(data); endpoint != "" {
		return a.dial(endpoint)
	}
	return a.look(data)
}

// look returns a client of a daemon that runs as long as this command.
func (a *app) look(data string) (*api.Client, error) {
	log := telemetry.NewLogger(a.remarks(), slog.LevelError, telemetry.Text)
	endpoint, leave, err := a.env.Local.Look(context.Background(), LocalOptions{Data: data, Log: log})
	if err != nil {
		return nil, a.ownFailed(data, err)
	}
	if endpoint == "" {
		return nil, console.Usage("no daemon is named, and nothing has run on this machine yet: there is no %s\nName one with --server or forgeyard context add, or run something here: forgeyard run", data)
	}
	a.leave, a.looks = leave, true
	return a.dial(endpoint)
}

// moves returns an error where a run is to be followed that stays as it is: it has not ended, and the daemon that is asked
// has no agent.
func (a *app) moves(run *api.Run) error {
	if !a.looks || run == nil || run.EndedAt != nil {
		return nil
	}
	return program.Exit(program.CodePending, fmt.Errorf("run %s has not ended, and no agent runs here that would go on with it\nStart one: forgeyard up", run.ID))
}

// MaxContexts bounds the saved servers.
const MaxContexts = 100

// A savedContext is a server with a name.
type savedContext struct {
	Name      string `json:"name"`
	Server    string `json:"server"`
	TokenFile string `json:"token_file,omitempty"`
}

// savedContexts is the file of them.
type savedContexts struct {
	Current  string         `json:"current,omitempty"`
	Contexts []savedContext `json:"contexts"`
}

func (s *savedContexts) find(name string) (savedContext, bool) {
	if i := s.index(name); i >= 0 {
		return s.Contexts[i], true
	}
	return savedContext{}, false
}

func (s *savedContexts) index(name string) int {
	return slices.IndexFunc(s.Contexts, func(c savedContext) bool { return c.Name == name })
}

func (a *app) contextsFile() (string, error) {
	dir, err := a.configDir()
	return filepath.Join(dir, "contexts.json"), err
}

// contexts reads the saved servers. None is not an error.
func (a *app) contexts() (*savedContexts, error) {
	file, err := a.contextsFile()
	if errors.Is(err, errHomeless) {
		return &savedContexts{}, nil
	}
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // where HOME is /dev/null, say
		return &savedContexts{}, nil
	}
	if err != nil {
		return nil, noConfig("read saved contexts", err)
	}
	var s savedContexts
	if err := json.Unmarshal(data, &s); err != nil || len(s.Contexts) > MaxContexts {
		return nil, fmt.Errorf("read saved contexts: %s is not what \"forgeyard context add\" wrote; move it away and add them anew", file)
	}
	return &s, nil
}

// save writes the saved servers, readable by this user alone.
func (a *app) save(s *savedContexts) error {
	file, err := a.contextsFile()
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return keep("the contexts", file, append(data, '\n'))
}

// noConfig is the error of our folder for configuration that cannot be used.
func noConfig(doing string, err error) error {
	return program.Exit(program.CodeInfrastructure, fmt.Errorf("%s: %w\nSettings can be in another folder: XDG_CONFIG_HOME=DIR", doing, err))
}

// keep replaces a file below our folder for configuration in one step, with a mode for its owner alone. It makes the folder.
func keep(what, file string, data []byte) error {
	err := os.MkdirAll(filepath.Dir(file), 0o700)
	if err == nil {
		err = disk.WriteFile(file, data, 0o600)
	}
	if err != nil {
		return noConfig("keep "+what, err)
	}
	return nil
}
