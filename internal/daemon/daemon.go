package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/agents"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/daemon/control"
	"github.com/forgeyard/forgeyard/internal/daemon/enrolment"
	"github.com/forgeyard/forgeyard/internal/daemon/httpapi"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/secrets"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Addresses is where a daemon can be reached, and by what it is known.
type Addresses struct {
	Agents      string // host:port, UDP
	HTTP        string // as http://host:port; empty where there is none
	Socket      string // as unix://path; empty where the system takes no path so long
	TokenFile   string // with the bearer token for HTTP
	Fingerprint string // of the CA
	Cluster     string
}

// Daemon is a daemon. It runs once.
type Daemon struct {
	cfg   Config
	ready chan struct{}

	mu      sync.Mutex
	addrs   Addresses
	access  *access.Access
	objects *objects.Objects
}

// New returns a daemon that does nothing until Run. It checks the configuration.
func New(cfg Config) (*Daemon, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	return &Daemon{cfg: cfg.withDefaults(), ready: make(chan struct{})}, nil
}

// Ready is closed when agents and requests are taken. If Run returns before, it never is.
func (d *Daemon) Ready() <-chan struct{} { return d.ready }

// Addresses is where the daemon can be reached, once it is ready.
func (d *Daemon) Addresses() Addresses {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.addrs
}

// Objects is the content store, once the daemon is ready and until it ends: for whoever works in the same process.
func (d *Daemon) Objects() *objects.Objects {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.objects
}

// Reload takes over what can change while the daemon runs: the bearer token, read anew from its file. It returns the
// settings of next that take a restart.
func (d *Daemon) Reload(next Config) (restart []string, err error) {
	d.mu.Lock()
	entry := d.access
	d.mu.Unlock()
	restart = d.cfg.changed(next)
	if entry == nil {
		return restart, nil
	}
	token, err := adminToken(d.cfg.Dir)
	if err != nil {
		return restart, err
	}
	entry.SetFolderToken(token)
	return restart, nil
}

// parts is what a running daemon is made of.
type parts struct {
	store    *store.Store
	logs     *logs.Store
	objects  *objects.Objects
	secrets  *secrets.Secrets
	ca       *trust.CA
	source   *trust.Source
	control  *control.Control
	agents   *agents.Server
	listener *quic.Listener
	access   *access.Access
	api      *httpapi.Server
	serving  atomic.Bool // agents can connect
}

// Run opens the folder, starts everything, and stops it when ctx ends, which is no error. Any other end of a part ends
// the daemon with its error.
func (d *Daemon) Run(ctx context.Context) error {
	stack := program.NewStack(ctx, d.cfg.Log)
	err := d.start(ctx, stack)
	if err != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		return errors.Join(err, stack.Wait(ended))
	}
	close(d.ready)
	return stack.Wait(ctx)
}

// start puts every part on the stack, each above what it uses.
func (d *Daemon) start(ctx context.Context, stack *program.Stack) error {
	p := &parts{}
	for _, step := range []struct {
		name string
		do   func(context.Context, *program.Stack, *parts) error
	}{
		{"store", d.openStore},
		{"trust", d.openTrust},
		{"logs", d.openLogs},
		{"objects", d.openObjects},
		{"secrets", d.openSecrets},
		{"control", d.openControl},
		{"agents", d.openAgents},
		{"http", d.openHTTP},
	} {
		if err := step.do(ctx, stack, p); err != nil {
			return fmt.Errorf("start %s: %w", step.name, err)
		}
	}
	return nil
}

func (d *Daemon) openStore(ctx context.Context, stack *program.Stack, p *parts) (err error) {
	if p.store, err = store.Open(ctx, d.cfg.Dir, store.Options{Log: d.cfg.Log}); err != nil {
		return err
	}
	stack.Close("store", p.store.Close)
	stack.Go("store watch", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-p.store.Failed():
			return store.ErrFailed
		}
	})
	return nil
}

func (d *Daemon) openTrust(_ context.Context, stack *program.Stack, p *parts) (err error) {
	now := time.Now()
	dir := filepath.Join(d.cfg.Dir, trustDir)
	var fresh bool
	if p.ca, fresh, err = trust.OpenCA(dir, trust.NewCluster, now); err != nil {
		return err
	}
	issue := func(now time.Time) (*tlsCertificate, error) { return p.ca.IssueDaemon(d.cfg.Names, now) }
	cert, err := issue(now)
	if err != nil {
		return err
	}
	p.source = trust.NewSource(cert)
	stack.Go("certificate", func(ctx context.Context) error {
		trust.KeepFresh(ctx, p.source, issue, d.cfg.Log)
		return nil
	})
	if fresh {
		d.cfg.Log.Info("a CA was made for this cluster; keep a copy of its folder", telemetry.KeyPath, dir, "fingerprint", p.ca.Fingerprint().String())
	}
	return nil
}

func (d *Daemon) openLogs(_ context.Context, stack *program.Stack, p *parts) (err error) {
	p.logs, err = logs.Open(logs.Config{Dir: filepath.Join(d.cfg.Dir, logsDir), Rows: logs.RowsOf(p.store), Log: d.cfg.Log})
	if err != nil {
		return err
	}
	stack.Close("logs", p.logs.Close)
	stack.Go("log closing", p.logs.Run)
	return nil
}

func (d *Daemon) openObjects(_ context.Context, stack *program.Stack, p *parts) (err error) {
	p.objects, err = objects.Open(filepath.Join(d.cfg.Dir, objectsDir), objects.Options{
		MaxBytes: d.cfg.Objects.MaxBytes, MinFree: d.cfg.Objects.MinFree, Log: d.cfg.Log,
	}, p.store)
	if err != nil {
		return err
	}
	stack.Close("objects", p.objects.Close)
	stack.Go("object room", func(ctx context.Context) error {
		p.objects.Watch(ctx)
		return nil
	})
	return nil
}

func (d *Daemon) openControl(_ context.Context, stack *program.Stack, p *parts) error {
	took := newDurations(d.cfg.Metrics)
	p.control = control.New(control.Config{
		Store: p.store, CA: p.ca, Policy: d.cfg.Policy, Trees: p.objects, Log: d.cfg.Log,
		Objects:    func(project forge.ProjectName) cas.Store { return p.objects.Project(project) },
		Place:      func(w control.Placement) { p.agents.Place(core.Place(w)) },
		Cancelling: took.cancelling,
	})
	gauges(d.cfg.Metrics, p.control)
	server, err := d.newAgents(p, took)
	if err != nil {
		return err
	}
	p.agents = server // before the loop that places jobs on it
	stack.Go("control", p.control.Run)
	return nil
}

func (d *Daemon) newAgents(p *parts, took *durations) (*agents.Server, error) {
	desk := enroll.NewDesk(enroll.DeskConfig{CA: p.ca, Store: enrolment.New(p.store), Lifetime: d.cfg.Lifetime, Audit: d.audit(p)})
	road := d.cfg.Link
	road.Terms, road.Software, road.Log = d.cfg.Terms, d.software(), d.cfg.Log
	if road.Terms.Versions == nil {
		road.Terms = protocol.OwnTerms()
	}
	return agents.New(agents.Config{
		Store: newObserved(p.store, d.cfg.Metrics, took, d.cfg.Log), Logs: p.logs, Objects: p.objects, Policy: d.cfg.Policy, Software: d.software(),
		Cluster: p.ca.Cluster(), Desk: desk, Secrets: secretSource{p.secrets},
		Counter: enroll.NewCounter(desk, enroll.CounterConfig{Link: road, Log: d.cfg.Log}), Control: p.control,
		Metrics: agents.NewMetrics(d.cfg.Metrics), Log: d.cfg.Log, Link: road, Spread: d.cfg.Spread,
	})
}

func (d *Daemon) software() string { return "forgeyard-daemon " + d.cfg.Version }

// listenerWithin bounds the wait for the last connections of the listener, which the agents' server has closed before.
const listenerWithin = 5 * time.Second

func (d *Daemon) openAgents(_ context.Context, stack *program.Stack, p *parts) error {
	options := d.cfg.QUIC
	options.Log = d.cfg.Log
	if options.StatelessReset == nil {
		key, err := trust.LoadStatelessKey(filepath.Join(d.cfg.Dir, trustDir))
		if err != nil {
			return err
		}
		options.StatelessReset = (*[32]byte)(&key)
	}
	settings := trust.ServerTLS(trust.Server{Roots: p.ca.Roots(), Certificates: p.source, Standing: d.standing(p)})
	var err error
	if p.listener, err = quic.Listen(d.cfg.Listen, settings, options); err != nil {
		return &AddressError{For: ForAgents, Address: d.cfg.Listen, Err: err}
	}
	stack.Close("listener", func() error {
		ctx, cancel := context.WithTimeout(context.Background(), listenerWithin)
		defer cancel()
		return p.listener.Shutdown(ctx)
	})
	p.serving.Store(true)
	stack.Go("agents", func(ctx context.Context) error {
		defer p.serving.Store(false)
		return p.agents.Serve(ctx, p.listener)
	})
	return nil
}

// set publishes where the daemon can be reached.
func (d *Daemon) set(p *parts, tcp, socket net.Listener) {
	a := Addresses{
		Agents: p.listener.Addr().String(), TokenFile: filepath.Join(d.cfg.Dir, tokenFile),
		Fingerprint: p.ca.Fingerprint().String(), Cluster: string(p.ca.Cluster()),
	}
	if tcp != nil {
		a.HTTP = "http://" + tcp.Addr().String()
	}
	if socket != nil {
		a.Socket = "unix://" + socket.Addr().String()
	}
	d.mu.Lock()
	d.addrs, d.access, d.objects = a, p.access, p.objects
	d.mu.Unlock()
	d.cfg.Log.Info("the daemon is ready", "agents", a.Agents, "http", a.HTTP, "socket", a.Socket, "ca", a.Fingerprint, "cluster", a.Cluster)
}
