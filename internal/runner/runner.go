// Package runner is the agent: everything around its core that touches the world.
//
// One goroutine, the loop, owns the core. It feeds events in, each with the reading of the BOOTTIME clock, and carries the
// effects out in their order. It waits for nothing else: what takes time is done by others, which post what came of it.
//
//	          ┌───────────── loop: core.Agent ─────────────┐
//	conn: dial, reader, writer      attempt.Run (each)   disk: journal
//	  ├─ log stream (each attempt)                       watch: machine, health, certificate
//	  └─ secret and object streams                       admin socket
//
// It decides nothing that the core decides: when to connect, what to say, what may start, what a verdict means. It refuses
// to run beside another process on the same state folder, without a certificate, and without an executor.
//
// All goroutines are started by Run or below it, and have ended when Run returns.
package runner

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/runner/attempt"
	"github.com/forgeyard/forgeyard/internal/runner/capability"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/localstate"
	"github.com/forgeyard/forgeyard/internal/runner/objects"
	"github.com/forgeyard/forgeyard/internal/runner/workspace"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// ErrEnded is returned to whoever asks an agent that has ended or not begun.
var ErrEnded = errors.New("this agent does not run")

// Agent is one agent process. Make it with New, and call Run once.
type Agent struct {
	cfg     Config
	session forge.AgentSessionID
	folder  *localstate.Folder
	trust   *trust.Folder
	work    *workspace.Root
	objects *objects.Objects
	host    *capability.Host
	source  *trust.Source
	roads   struct{ agents, recovery transport.Dialer }
	linkCfg link.Config
	// previous is what earlier processes held, whose logs may have to be sent. It does not change.
	previous map[forge.AttemptID]forge.AttemptContext

	// Of the loop.
	core       *core.Agent
	conns      map[uint64]*conn
	attempts   map[forge.AttemptID]*attempt.Attempt
	logsFrom   map[forge.AttemptID]forge.LogSeq // streams that wait for their attempt to be prepared
	caps       forge.Capabilities
	stopping   bool
	registered bool
	policy     forge.LeasePolicy
	code       core.ExitCode
	exited     bool

	inbox chan func()
	life  context.Context // of everything below the loop; a field, because that is all of this package
	die   context.CancelFunc
	tasks sync.WaitGroup
	disk  disk

	saving sync.Mutex // one identity after the other goes to the disk and into use

	mu       sync.Mutex
	identity *trust.Identity
	current  *conn // the newest that stood
	moved    chan struct{}
	unknown  bool // a daemon that does not take the certificate does not take the proof of its key either
	reading  capability.Reading
	facts    capability.Facts
	lastErr  string
	lastWhy  string
	kept     map[forge.AttemptID]logged // with something on the disk; acknowledgements find their logs here
}

// New takes the state folder and looks at the machine. Run gives the folder back; an Agent that is not run is closed with
// Close. The error is localstate.ErrInUse where another process has the folder, and trust.ErrNotEnrolled where there is no
// certificate.
func New(ctx context.Context, cfg Config) (_ *Agent, err error) {
	cfg = cfg.withDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	a := &Agent{
		cfg: cfg, session: ident.New[forge.AgentSessionID](), policy: cfg.Lease,
		conns: map[uint64]*conn{}, attempts: map[forge.AttemptID]*attempt.Attempt{}, logsFrom: map[forge.AttemptID]forge.LogSeq{},
		kept: map[forge.AttemptID]logged{}, inbox: make(chan func(), 256), moved: make(chan struct{}),
	}
	a.life, a.die = context.WithCancel(context.WithoutCancel(ctx))
	if a.folder, err = localstate.Open(cfg.State); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if err := a.enrolled(); err != nil {
		return nil, err
	}
	if err := a.machine(); err != nil {
		return nil, err
	}
	previous, err := a.folder.Load()
	if err != nil {
		return nil, err
	}
	a.previous = make(map[forge.AttemptID]forge.AttemptContext, len(previous))
	for _, r := range previous {
		a.previous[r.Context.Attempt] = r.Context
	}
	for _, q := range a.folder.Quarantined() {
		cfg.Log.Warn("a file of the state folder was set aside", telemetry.KeyPath, q.File, telemetry.KeyError, q.Err)
	}
	a.core = core.New(core.Config{
		Runner: a.identity.Runner(), Session: a.session, StateFolder: a.folder.ID(), Boot: a.folder.Boot(),
		StartCounter: a.folder.Starts(), Version: cfg.Version, Admission: a.admission(), Slots: cfg.Slots,
		Endpoints: len(cfg.Endpoints), Seed: ident.Seed(),
	}, cfg.Lease, previous)
	a.disk = newDisk(a.folder, cfg.Log, func(id forge.AttemptID, version uint64) {
		a.post(core.Journaled{Attempt: id, Version: version})
	})
	return a, nil
}

// enrolled loads who this agent is.
func (a *Agent) enrolled() (err error) {
	if a.trust, err = trust.OpenFolder(TrustDir(a.folder.Path())); err != nil {
		return err
	}
	if a.identity, err = a.trust.Load(); err != nil {
		return fmt.Errorf("%w (state folder %s)", err, a.folder.Path())
	}
	a.source = trust.NewSource(a.identity.TLS())
	a.roads.agents, a.roads.recovery = a.cfg.Roads(a.identity.Roots(), a.source)
	a.linkCfg = link.Config{Role: protocol.RoleAgent, Terms: protocol.OwnTerms(), Software: "forgeyard-agent " + a.cfg.Version, Log: a.cfg.Log}
	return nil
}

// machine makes what runs jobs, and probes.
func (a *Agent) machine() (err error) {
	path := a.folder.Path()
	executors, err := a.cfg.Executors(filepath.Join(path, executorName))
	if err != nil {
		return fmt.Errorf("prepare the executors: %w", err)
	}
	if a.work, err = workspace.Open(filepath.Join(path, workName), workspace.Options{Failed: a.notRemoved, Removed: a.removed}); err != nil {
		return err
	}
	if a.objects, err = a.openObjects(filepath.Join(path, objectsName)); err != nil {
		return err
	}
	a.host = &capability.Host{
		Executors: executors, Disk: a.work.Free, Labels: a.cfg.Labels, Slots: uint32(a.cfg.Slots), Reserve: a.cfg.Reserve,
		Memory: filepath.Join(path, toolsName),
	}
	if a.cfg.Policy.AllowHostNetwork {
		a.host.Features = append(a.host.Features, forge.FeatureHostNetwork)
	}
	if a.caps, err = a.host.Quick(); err != nil { // watch finds the toolchains
		a.cfg.Log.Warn("the machine was not seen whole", telemetry.KeyError, err)
	}
	if err := a.caps.Validate(); err != nil {
		return fmt.Errorf("what this agent is told to say of itself: %w", err)
	}
	a.reading = a.host.Read()
	a.facts.Sandboxes = a.caps.Sandboxes
	return nil
}

// Close gives back what New has taken, of an agent that was not run.
func (a *Agent) Close() error {
	a.die()
	var errs []error
	if a.work != nil {
		errs = append(errs, a.work.Close())
	}
	if a.objects != nil {
		errs = append(errs, a.objects.Close())
	}
	return errors.Join(append(errs, a.folder.Close())...)
}

// Run runs the agent until it is stopped or may not go on, and says with which code the process ends. The end of ctx
// ends it at once, like Force.
func (a *Agent) Run(ctx context.Context) (core.ExitCode, error) {
	a.cfg.Log.Info("the agent starts", telemetry.KeyRunner, a.Runner().String(), telemetry.KeySession, a.session.String(),
		telemetry.KeyVersion, a.cfg.Version, telemetry.KeyCount, a.folder.Starts())
	stopAdmin := a.serveAdmin()
	a.tasks.Go(a.watch)
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		a.disk.run()
	}()
	defer context.AfterFunc(ctx, a.Force)()
	a.loop()
	a.die() // kills what runs
	a.leave()
	stopAdmin()
	a.disk.end()
	<-wrote
	a.cfg.Log.Info("the agent ends", telemetry.KeyCode, int(a.code))
	return a.code, a.Close()
}

// leave waits for everything that Run has started. A workload that cannot be killed does not hold the process up for ever.
func (a *Agent) leave() {
	for _, c := range a.conns {
		a.tasks.Go(func() { c.end(forge.CloseNormal) })
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.tasks.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(leaveWithin):
		a.cfg.Log.Error("something of this agent does not end; the process ends without it")
	}
}

// Runner is who this agent is.
func (a *Agent) Runner() forge.RunnerID {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.identity.Runner()
}

// Stop makes the agent take nothing new and end once what it holds is done.
func (a *Agent) Stop() {
	a.do(func() {
		a.stopping = true
		a.step(core.Command{Kind: core.CommandStop})
	})
}

// Force ends the agent at once. What runs is killed, and reported by the next process.
func (a *Agent) Force() { a.do(func() { a.step(core.Command{Kind: core.CommandForce}) }) }

// Executors are what runs jobs here.
func (a *Agent) executors() []executor.Executor { return a.host.Executors }
