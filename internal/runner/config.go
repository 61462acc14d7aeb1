package runner

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/runner/logspool"
	"github.com/forgeyard/forgeyard/internal/runner/objects"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// What an agent keeps in its state folder, besides what package localstate does.
const (
	trustName    = "trust"
	workName     = "work"
	spoolName    = "spool"
	executorName = "executor"
	objectsName  = "objects"
	toolsName    = "toolchains" // what they have said of themselves
)

// MaxEndpoints bounds the daemons that an agent may be told of.
const MaxEndpoints = 64

// TrustDir is where the agent of a state folder has its key and certificate: what an enrolment writes.
func TrustDir(state string) string { return filepath.Join(state, trustName) }

// Config is what an agent is made of.
type Config struct {
	State     string   // the state folder; made if it is missing
	Endpoints []string // host:port of daemons, tried in turn
	// Roads returns the ways to a daemon: with the runner's certificate, for ALPN forgeyard-agent/1, and without one, for
	// forgeyard-enroll/1. They belong to the caller, who closes them when Run has returned. A certificate that is renewed is put
	// into the source.
	Roads func(roots trust.Roots, certificates *trust.Source) (agents, recovery transport.Dialer)
	// Executors makes what runs jobs, on a folder that is theirs alone. It is called once, when the state folder is held.
	Executors func(state string) ([]executor.Executor, error)

	Slots   int             // attempts at once; zero is 1
	Labels  []string        // hints for the scheduler
	Reserve forge.Resources // kept for the machine's owner and the agent
	Policy  forge.LocalPolicy
	Spool   logspool.Config // of each attempt; Limit is the spec's
	Keep    objects.Limits  // of objects and trees for later attempts; zero is objects.DefaultLimits
	// InPlace gives the daemon's store as an attempt may use it, where it is on this machine. nil: over the connection.
	InPlace func(of forge.AttemptContext) cas.Store
	Env     []forge.EnvVar // for every step

	Version string            // of this program
	Lease   forge.LeasePolicy // until the first registration; zero is the default
	Log     *slog.Logger      // nil: silence
	Metrics *Metrics          // nil: nothing is counted

	now func() forge.Instant // clock.Boot where it is nil
}

func (c Config) withDefaults() Config {
	if c.Slots == 0 {
		c.Slots = 1
	}
	if c.Lease == (forge.LeasePolicy{}) {
		c.Lease = forge.DefaultLeasePolicy()
	}
	if c.Keep == (objects.Limits{}) {
		c.Keep = objects.DefaultLimits()
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.now == nil {
		c.now = clock.Boot
	}
	return c
}

// Validate reports what an agent cannot be made of.
func (c *Config) Validate() error {
	var errs []error
	need := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	need(c.State != "", "no state folder is named")
	need(len(c.Endpoints) > 0 && len(c.Endpoints) <= MaxEndpoints, "%d endpoints are named; an agent needs 1 to %d", len(c.Endpoints), MaxEndpoints)
	need(c.Slots > 0 && c.Slots <= forge.MaxAttemptsPerAgent, "%d jobs at once; 1 to %d are possible", c.Slots, forge.MaxAttemptsPerAgent)
	need(c.Roads != nil && c.Executors != nil, "an agent needs a road to a daemon and something that runs jobs")
	errs = append(errs, c.Lease.Validate())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	return nil
}

// Intervals of what an agent does by itself.
const (
	lookEvery    = 10 * time.Second // at the machine, and whether a certificate is due
	reportEvery  = time.Minute      // health, where nothing has changed
	sweepEvery   = 10 * time.Minute // workspaces that a clean-up could not remove
	tidyEvery    = time.Hour        // what is kept for later jobs
	renewAgain   = 5 * time.Minute  // where no answer came
	leaveWithin  = 8 * time.Second  // for workloads to be dead when the process ends: less than a second signal leaves us
	secretWithin = 10 * time.Second // for one try to get a secret
)
