//go:build linux

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/api"
)

// Agent is one agent, enrolled, on a state folder of its own. It may be killed and started again.
type Agent struct {
	process
	fleet    *Fleet
	Folder   string
	Endpoint string   // that it connects to: the daemon's, or a relay's
	Env      []string // of the process, besides ours
}

// AddAgent makes an agent with some slots and enrols it. An empty endpoint is the daemon itself.
func (f *Fleet) AddAgent(ctx context.Context, name string, slots int, endpoint string) (*Agent, error) {
	if endpoint == "" {
		endpoint = f.Daemon.Endpoint()
	}
	a := &Agent{
		fleet: f, Folder: filepath.Join(f.Folder, name), Endpoint: endpoint,
		process: process{name: name, folder: f.Folder, log: f.log, forks: f.forks},
	}
	f.mu.Lock()
	f.agents = append(f.agents, a)
	f.mu.Unlock()
	if err := a.configure(slots); err != nil {
		return nil, err
	}
	token, err := f.Token(ctx, name, slots)
	if err != nil {
		return nil, fmt.Errorf("enrolment token: %w", err)
	}
	return a, a.Enroll(ctx, token)
}

// Endpoint is where agents connect to the daemon.
func (d *Daemon) Endpoint() string { return fmt.Sprintf("127.0.0.1:%d", d.Port) }

// Token asks the daemon for an enrolment token.
func (f *Fleet) Token(ctx context.Context, name string, slots int) (string, error) {
	client, err := f.Daemon.Client()
	if err != nil {
		return "", err
	}
	defer client.Close()
	count := uint32(slots)
	token, err := client.CreateToken(ctx, &api.TokenRequest{Name: name, Slots: &count})
	if err != nil {
		return "", err
	}
	return token.Token, nil
}

func (a *Agent) configFile() string { return filepath.Join(a.fleet.Folder, a.name+".yaml") }

func (a *Agent) configure(slots int) error {
	text := fmt.Sprintf(`data_dir: %s
control_plane: {endpoints: ["quic://%s"]}
max_parallel_jobs: %d
workspace_retention: 0s
policy: {allow_host_network: true, allow_unconfined: true}
reserve: {disk: 0B}
log: {level: debug, format: json}
sandbox: {pool: %d, read_only: [%s]}
`, a.Folder, a.Endpoint, slots, readySandboxes, quoted(a.fleet.Shows))
	return os.WriteFile(a.configFile(), []byte(text), 0o600)
}

// quoted writes words as items of a list.
func quoted(words []string) string {
	var items []string
	for _, word := range words {
		items = append(items, strconv.Quote(word))
	}
	return strings.Join(items, ", ")
}

// Enroll makes the agent a runner. The token goes over its standard input.
func (a *Agent) Enroll(ctx context.Context, token string) error {
	cmd := exec.CommandContext(ctx, a.fleet.Programs.Agent, "enroll", "--config", a.configFile())
	cmd.Stdin = bytes.NewBufferString(token + "\n")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("enrol %s: %w\n%s", a.name, err, out)
	}
	return nil
}

// Start runs the agent. It does not wait for it to be connected; AwaitOnline does.
func (a *Agent) Start() error {
	return a.start(a.fleet.Programs.Agent, a.Env, "run", "--config", a.configFile())
}

// AwaitOnline waits until the daemon says that the agent is there.
func (a *Agent) AwaitOnline(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, ReadyWithin)
	defer cancel()
	return a.AwaitState(ctx, "online")
}

// AwaitState waits until the daemon reports a state of the runner.
func (a *Agent) AwaitState(ctx context.Context, state string) error {
	client, err := a.fleet.Daemon.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	return Await(ctx, a.name+" to be "+state, func() (bool, error) {
		runner, err := a.runner(ctx, client)
		return err == nil && runner.State == state, nil
	})
}

// Runner returns what the daemon knows of it.
func (a *Agent) Runner(ctx context.Context) (*api.Runner, error) {
	client, err := a.fleet.Daemon.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return a.runner(ctx, client)
}

func (a *Agent) runner(ctx context.Context, client *api.Client) (*api.Runner, error) {
	list, err := client.Runners(ctx, api.Page{})
	if err != nil {
		return nil, err
	}
	for i := range list.Items {
		if list.Items[i].Name == a.name {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("the daemon knows no runner %s", a.name)
}

// Clone is an agent on a state folder that was copied from another one's, under that folder's new name.
func (f *Fleet) Clone(of *Agent, name string, slots int) (*Agent, error) {
	a := &Agent{
		fleet: f, Folder: filepath.Join(f.Folder, name), Endpoint: of.Endpoint,
		process: process{name: name, folder: f.Folder, log: f.log, forks: f.forks},
	}
	f.mu.Lock()
	f.agents = append(f.agents, a)
	f.mu.Unlock()
	return a, a.configure(slots)
}
