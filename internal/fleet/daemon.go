//go:build linux

package fleet

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Daemon is the fleet's daemon. It may be killed and started again on the same folder and port.
type Daemon struct {
	process
	fleet  *Fleet
	Folder string
	Port   int // on which agents connect
}

// Socket is the path of its HTTP socket.
func (d *Daemon) Socket() string { return filepath.Join(d.Folder, "http.sock") }

func (d *Daemon) configFile() string { return filepath.Join(d.fleet.Folder, "daemon.yaml") }

// configure writes the settings.
func (d *Daemon) configure() error {
	s := d.fleet.Scale
	text := fmt.Sprintf(`data_dir: %s
agent_transport: {listen: "127.0.0.1:%d", names: ["127.0.0.1"]}
http: {listen: "127.0.0.1:0"}
lease: {ttl: %v, grace: %v, renew: %v, margin: %v, kill_lead: %v, soft_grace: %v, offer_ttl: %v, request: %v}
log: {level: debug, format: json}
`, d.Folder, d.Port, s.TTL, s.Grace, s.Renew, s.Margin, s.KillLead, s.SoftGrace, s.OfferTTL, s.Request)
	return os.WriteFile(d.configFile(), []byte(text), 0o600)
}

// Start runs the daemon and waits until it is ready.
func (d *Daemon) Start(ctx context.Context) error { return d.StartWith(ctx) }

// StartWith is Start with more in the daemon's environment, as NAME=VALUE.
func (d *Daemon) StartWith(ctx context.Context, env ...string) error {
	if err := d.start(d.fleet.Programs.Daemon, env, "serve", "--config", d.configFile()); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, ReadyWithin)
	defer cancel()
	client, err := d.Client()
	if err != nil {
		return err
	}
	defer client.Close()
	return Await(ctx, "the daemon to be ready", func() (bool, error) {
		if !d.Alive() {
			return false, fmt.Errorf("it has ended; its log is %s", d.LogFile())
		}
		health, err := client.Ready(ctx)
		return err == nil && health.Status == "ok", nil
	})
}

// Client returns a client of its interface over its socket. Close it.
func (d *Daemon) Client() (*api.Client, error) {
	return api.NewClient("unix://"+d.Socket(), api.Options{Timeout: 10 * time.Second})
}

// AwaitRun waits until a run has ended. A daemon that is away meanwhile is waited for.
func (d *Daemon) AwaitRun(ctx context.Context, client *api.Client, id string) (*api.Run, error) {
	var run *api.Run
	err := Await(ctx, "run "+id+" to end", func() (bool, error) {
		now, err := client.Run(ctx, id)
		if err != nil {
			return false, nil //nolint:nilerr // it may be on its way back
		}
		run = now
		return run.Ended, nil
	})
	return run, err
}

// AwaitAttempt waits until the newest attempt of a job is in one of the states, and returns it.
func (d *Daemon) AwaitAttempt(ctx context.Context, client *api.Client, job string, states ...forge.AttemptState) (*api.Attempt, error) {
	var attempt *api.Attempt
	err := Await(ctx, fmt.Sprintf("an attempt of job %s to be in %v", job, states), func() (bool, error) {
		now, err := client.Job(ctx, job)
		if err != nil || len(now.AllAttempts) == 0 {
			return false, nil //nolint:nilerr // likewise
		}
		attempt = &now.AllAttempts[len(now.AllAttempts)-1]
		for _, s := range states {
			if attempt.State == s.String() {
				return true, nil
			}
		}
		return false, nil
	})
	return attempt, err
}

// Log returns the bytes of an attempt's log that its workload has written, as far as they are stored.
func (f *Fleet) Log(ctx context.Context, client *api.Client, attempt string) ([]byte, error) {
	body, err := client.RawLog(ctx, attempt, api.LogOptions{})
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(body)
	if closeErr := body.Close(); err == nil {
		err = closeErr
	}
	return content, err
}
