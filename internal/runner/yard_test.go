package runner

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/runnertest"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/trust"
)

func TestMain(m *testing.M) {
	supervise()
	if err := os.Setenv("PATH", ""); err != nil { // no time is spent on asking tools for their versions
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

const endpoint = "daemon:1"

// policy is as short as leases may be.
func policy() forge.LeasePolicy {
	p := forge.DefaultLeasePolicy()
	p.TTL, p.Grace, p.Renew, p.Margin = forge.MinHardTTL, forge.MinHardTTL, time.Second, 2*time.Second
	p.KillLead, p.SoftGrace = 2*time.Second, time.Second
	p.OfferTTL, p.Request = 5*time.Second, 5*time.Second
	return p
}

// yard is a network, a daemon on it, and a machine with a state folder.
type yard struct {
	t       *testing.T
	network *inmem.Network
	daemon  *runnertest.Daemon
	machine *runnertest.Machine
	state   string

	ca       *trust.CA
	runner   forge.RunnerID
	enrolled time.Time // when the certificate was made
}

func newYard(t *testing.T, machine *runnertest.Machine) *yard {
	t.Helper()
	if err := policy().Validate(); err != nil {
		t.Fatal(err)
	}
	network := inmem.New(inmem.Limits{})
	ca, err := trust.NewCA("yard", time.Now().Add(-365*24*time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	y := &yard{
		t: t, network: network, machine: machine, state: filepath.Join(t.TempDir(), "state"),
		ca: ca, runner: ident.New[forge.RunnerID](), enrolled: time.Now(),
	}
	y.daemon = runnertest.NewDaemon(t, network, endpoint, policy())
	y.enrol()
	return y
}

// enrol gives the state folder a certificate.
func (y *yard) enrol() {
	y.t.Helper()
	folder, err := trust.OpenFolder(TrustDir(y.state))
	y.must(err)
	key, err := folder.Key()
	y.must(err)
	der, err := trust.NewRequest(key)
	y.must(err)
	request, err := trust.ParseRequest(der)
	y.must(err)
	cert, err := y.ca.IssueRunner(request, y.runner, y.enrolled, 0)
	y.must(err)
	id, err := trust.NewIdentity(key, [][]byte{cert.Raw}, y.ca.Roots().DER())
	y.must(err)
	y.must(folder.Save(id))
}

func (y *yard) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

// running is an agent that runs.
type running struct {
	*Agent
	yard  *yard
	ended chan struct{}
	code  core.ExitCode
	err   error
}

func (y *yard) start(edit func(*Config)) *running {
	y.t.Helper()
	cfg := Config{
		State: y.state, Endpoints: []string{endpoint}, Version: "0.0.1", Slots: 2,
		Policy: forge.LocalPolicy{AllowUnconfined: true},
		Roads: func(trust.Roots, *trust.Source) (transport.Dialer, transport.Dialer) {
			return y.network.Dialer(inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNAgent}}),
				y.network.Dialer(inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNEnroll}})
		},
		Executors: func(string) ([]executor.Executor, error) { return []executor.Executor{y.machine}, nil },
		Log:       slog.New(slog.NewTextHandler(y.t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if edit != nil {
		edit(&cfg)
	}
	a, err := New(y.t.Context(), cfg)
	y.must(err)
	r := &running{Agent: a, yard: y, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.code, r.err = a.Run(context.Background())
	}()
	y.t.Cleanup(func() {
		a.Force()
		<-r.ended
	})
	return r
}

// end waits for the end of the process.
func (r *running) end(want core.ExitCode) {
	r.yard.t.Helper()
	select {
	case <-r.ended:
	case <-time.After(runnertest.Patience):
		r.yard.t.Fatal("the agent does not end")
	}
	if r.code != want || r.err != nil {
		r.yard.t.Errorf("the agent ended with %d, %v; want %d", r.code, r.err, want)
	}
}

func spec() forge.JobSpec {
	s := forge.DefaultJobSpec()
	s.Job, s.Sandbox = "build", forge.SandboxNeed{Kind: forge.SandboxProcess}
	s.Resources = forge.Resources{CPU: 100, Memory: 16 * forge.MiB, Disk: 16 * forge.MiB, Slots: 1}
	s.Steps = []forge.Step{{Argv: []string{"true"}, Dir: forge.SourceDir, When: forge.WhenSuccess}}
	return s
}

func of(c forge.AttemptContext) func(*forge.Completion) bool {
	return func(m *forge.Completion) bool { return m.Context == c }
}

// untilIdle waits until the agent holds nothing, on the disk either.
func (r *running) untilIdle() {
	r.yard.t.Helper()
	deadline := time.Now().Add(runnertest.Patience)
	for {
		s, err := r.Status(r.yard.t.Context())
		r.yard.must(err)
		if len(s.Attempts) == 0 {
			break
		}
		if time.Now().After(deadline) {
			r.yard.t.Fatalf("the agent still holds %+v", s.Attempts)
		}
	}
	r.yard.must(r.work.Idle(r.yard.t.Context()))
}

func (y *yard) nothingLeft() {
	y.t.Helper()
	if left := y.left(); len(left) > 0 {
		y.t.Errorf("left on the disk: %v", left)
	}
}

// left lists what there is of attempts on the disk.
func (y *yard) left() (left []string) {
	y.t.Helper()
	for _, name := range []string{"journal", "work", "spool"} {
		entries, err := os.ReadDir(filepath.Join(y.state, name))
		if err != nil && !os.IsNotExist(err) {
			y.t.Fatal(err)
		}
		for _, e := range entries {
			left = append(left, name+"/"+e.Name())
		}
	}
	return left
}
