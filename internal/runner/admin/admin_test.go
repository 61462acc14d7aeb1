package admin_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/admin"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// agent answers what the test has put there.
type agent struct {
	status admin.Status
	caps   forge.Capabilities
	health admin.Health
	told   []string
	err    error
}

func (a *agent) Status(context.Context) (admin.Status, error)             { return a.status, a.err }
func (a *agent) Capabilities(context.Context) (forge.Capabilities, error) { return a.caps, a.err }
func (a *agent) Health(context.Context) (admin.Health, error)             { return a.health, a.err }
func (a *agent) Drain(context.Context) error                              { a.told = append(a.told, "drain"); return a.err }

func (a *agent) Resume(context.Context) error { a.told = append(a.told, "resume"); return a.err }

func (a *agent) CleanUp(context.Context) (admin.CleanUp, error) {
	return admin.CleanUp{Removed: 3, Problem: "one is stuck"}, a.err
}

func serve(t *testing.T, a admin.Agent) (string, *admin.Client) {
	t.Helper()
	dir := t.TempDir()
	s, err := admin.Listen(dir, a, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		s.Serve()
	}()
	c := admin.NewClient(dir)
	t.Cleanup(func() {
		c.Close()
		s.Close()
		<-served
	})
	return dir, c
}

func TestEverythingThatIsAskedIsAnswered(t *testing.T) {
	a := &agent{
		status: admin.Status{
			Runner: "R", State: "online", Starts: 7, Connection: admin.Connection{Endpoint: "h:1", Since: time.Unix(1, 0).UTC(), Sequence: 2},
			Attempts: []admin.Attempt{{ID: "A", State: "running", LeaseFor: 61.5, LogNext: 9}},
			Active:   admin.AmountsOf(forge.Resources{CPU: 500, Slots: 2}),
			InUse:    admin.InUse{Objects: 1, Trees: 2, Workspaces: 3},
			Free:     admin.AmountsOf(forge.Resources{CPU: 1500, Memory: forge.GiB, Slots: 1}),
		},
		caps:   forge.Capabilities{SchemaVersion: 1, Platform: forge.Platform{OS: "linux"}, Labels: []string{"a"}},
		health: admin.HealthOf(forge.HealthOf([]forge.HealthCheck{{Kind: forge.CheckClock, Status: forge.Degraded, Detail: "late"}})),
	}
	_, c := serve(t, a)
	status, err := c.Status(t.Context())
	if diff := cmp.Diff(a.status, status); err != nil || diff != "" {
		t.Errorf("status: %v\n%s", err, diff)
	}
	caps, err := c.Capabilities(t.Context())
	if diff := cmp.Diff(a.caps, caps); err != nil || diff != "" {
		t.Errorf("capabilities: %v\n%s", err, diff)
	}
	health, err := c.Health(t.Context())
	if diff := cmp.Diff(a.health, health); err != nil || diff != "" {
		t.Errorf("health: %v\n%s", err, diff)
	}
	if cleaned, err := c.CleanUp(t.Context()); err != nil || cleaned.Removed != 3 || cleaned.Problem == "" {
		t.Errorf("cleanup: %+v, %v", cleaned, err)
	}
	if err := errors.Join(c.Drain(t.Context()), c.Resume(t.Context())); err != nil || strings.Join(a.told, " ") != "drain resume" {
		t.Errorf("told %v, %v", a.told, err)
	}
}

func TestWhatTheAgentCannotDoIsSaid(t *testing.T) {
	_, c := serve(t, &agent{err: errors.New("it is ending")})
	if err := c.Drain(t.Context()); err == nil || !strings.Contains(err.Error(), "it is ending") {
		t.Errorf("drain: %v", err)
	}
}

func TestTheSocketIsItsOwnersAlone(t *testing.T) {
	dir, _ := serve(t, &agent{})
	info, err := os.Stat(filepath.Join(dir, admin.SocketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

func TestADeadAgentsSocketIsNoneAndIsReplaced(t *testing.T) {
	dir := t.TempDir()
	c := admin.NewClient(dir)
	defer c.Close()
	if _, err := c.Status(t.Context()); !errors.Is(err, admin.ErrNotRunning) {
		t.Errorf("without a socket: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, admin.SocketName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Status(t.Context()); !errors.Is(err, admin.ErrNotRunning) {
		t.Errorf("with a dead one: %v", err)
	}
	s, err := admin.Listen(dir, &agent{}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { s.Serve(); close(done) }()
	if _, err := c.Status(t.Context()); err != nil {
		t.Errorf("with a new one: %v", err)
	}
	c.Close()
	s.Close()
	<-done
}
