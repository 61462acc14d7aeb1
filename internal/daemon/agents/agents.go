// Package agents is the daemon's edge to its agents: the loop around agents/core, which decides, and everything that the
// decisions need of the world.
//
//	listener ─▶ Serve ─▶ one connection: reader ──events──▶ loop (owns core.Daemon) ──▶ workers ─▶ store
//	                          │          writer ◀──outbox──┘        ▲                      │
//	                          ├─ log streams ─▶ logs ─▶ outbox      └──────── Done ────────┘
//	                          └─ secret streams
//
// It decides nothing about leases, sessions or attempts a second time: frames go to the core as they came, rules go to the
// store as the core made them, and answers leave in the order in which the core gave them. What it adds is bounded: frames
// of a connection that wait, transactions under way, bytes of logs on their way to the disk, connections altogether and
// for each runner. A peer that is slow, silent or hostile costs its own connection and nobody else's.
//
// Log frames are acknowledged when they are durable. A log stream that cannot go on is reset rather than left to fill
// the windows that it shares with the control stream, so no log ever holds up a heartbeat.
//
// It refuses a connection whose certificate names no runner of the cluster, streams about attempts of somebody else, which
// look like attempts that are not there, and secrets for anything but an accepted lease of the very session that asks.
//
// Serve owns every goroutine: the loop, the workers, and for each connection a reader, a writer and an acceptor of streams,
// with two more for each log stream. It returns when all of them have ended.
package agents

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/cas/remote"
	"github.com/forgeyard/forgeyard/internal/clock"
	"github.com/forgeyard/forgeyard/internal/daemon/agents/core"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/objects"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Bounds.
const (
	// MaxConns is how many connections may stand at once, whatever their state.
	MaxConns = 8192
	// MaxConnsPerRunner is how many of them may show the certificate of one runner: the one that counts, the one before it,
	// and some of which nobody has noticed yet that they are dead. The next one takes the place of the oldest that has not
	// registered.
	MaxConnsPerRunner = 8
	// MaxFrames is how many frames of one connection may wait for their answer. Those behind stay with the peer.
	MaxFrames = 16
	// MaxWork is how many transactions and readings are under way at once. Those behind wait in their order.
	MaxWork = 512
	// MaxLogBytes is how many bytes of logs may be between the network and the disk, of all connections.
	MaxLogBytes = 64 << 20
	// ShutdownWithin is how long what is under way has to end once Serve is told to stop.
	ShutdownWithin = 5 * time.Second
	// SummaryEvery is how often the load that a runner reports is written down where nothing else about it changes.
	SummaryEvery = time.Minute
)

// Store is the part of the database that is used here; see store.Store for the contract of each method.
type Store interface {
	Do(ctx context.Context, class store.Class, cmd authority.Command) (authority.Answer, error)
	Snapshot(ctx context.Context, runner forge.RunnerID) (*authority.Snapshot, error)
	View(ctx context.Context, read func(v *store.View) error) error
	Update(ctx context.Context, class store.Class, change func(tx *store.Tx) error) error
}

// Control hears about runners, to place jobs on them. Its methods return at once; they are called one after the other.
type Control interface {
	// Connected says that a runner is there to take work: it has registered and said what it still holds.
	Connected(runner forge.RunnerID, session forge.AgentSessionID)
	// Refused says that its agent was not let in, because there is no version that it and this daemon both speak. why names
	// the versions of both.
	Refused(runner forge.RunnerID, reason forge.CloseReason, why string)
	// Disconnected says that its connection is gone. Its leases stand until they end.
	Disconnected(runner forge.RunnerID)
	// Capabilities says that a new snapshot is in the store.
	Capabilities(runner forge.RunnerID)
	// Heartbeat brings what a runner that was renewed says of its state and load; the load is zero until it has measured.
	Heartbeat(runner forge.RunnerID, state forge.AgentState, load forge.ResourceSummary)
	// Health brings a report.
	Health(runner forge.RunnerID, health forge.Health)
}

// nobody is a Control that does nothing.
type nobody struct{}

func (nobody) Connected(forge.RunnerID, forge.AgentSessionID)                    {}
func (nobody) Refused(forge.RunnerID, forge.CloseReason, string)                 {}
func (nobody) Disconnected(forge.RunnerID)                                       {}
func (nobody) Capabilities(forge.RunnerID)                                       {}
func (nobody) Heartbeat(forge.RunnerID, forge.AgentState, forge.ResourceSummary) {}
func (nobody) Health(forge.RunnerID, forge.Health)                               {}

// Desk gives certificates; enroll.Desk is one.
type Desk interface {
	// Use notes that a connection which registers was made with a certificate.
	Use(ctx context.Context, cert *x509.Certificate) (forge.RunnerID, error)
	// Renew answers a request on a connection that was made with a certificate.
	Renew(ctx context.Context, cert *x509.Certificate, req *agentv1.RenewCertificateV1) (*agentv1.CertificateIssuedV1, error)
}

// Counter serves the enrolment's road; enroll.Counter is one.
type Counter interface {
	// Serve serves a connection to its end and closes it.
	Serve(ctx context.Context, conn transport.Conn)
}

// Config is what a Server is made of.
type Config struct {
	Store    Store
	Logs     *logs.Store
	Objects  *objects.Objects // nil: no objects move
	Policy   forge.LeasePolicy
	Software string // name and version of this program, for people
	Cluster  trust.Cluster
	Desk     Desk
	Counter  Counter      // nil: nobody can enrol
	Secrets  SecretSource // nil: there are none
	Control  Control
	Metrics  *Metrics     // nil: nobody counts
	Log      *slog.Logger // nil: silent

	// Link bounds the links; its role, software, log and observer are set here. Zero terms stand for what is built.
	Link link.Config
	// Spread is the time within which agents are asked to come back after a shutdown.
	Spread time.Duration
}

// Server serves agents. All methods may be called from several goroutines at once.
type Server struct {
	cfg  Config
	boot func() forge.Instant

	core     *core.Daemon // of the loop
	conns    map[core.ConnID]*conn
	running  int
	waiting  []func()
	last     core.ConnID
	closing  bool
	audits   map[auditKey]int // since audited
	audited  forge.Instant
	origin   *conn // whose event is being handled, if anybody's
	events   chan func()
	loopEnd  chan struct{}
	serving  context.Context // ends when Serve is told to stop
	halt     context.CancelFunc
	work     context.Context // ends when what is under way has had its time
	stopWork context.CancelFunc
	place    sync.WaitGroup // connections, and what closes them
	places   chan struct{}
	budget   *semaphore.Weighted
	objects  *remote.Server
	served   atomic.Bool

	mu     sync.Mutex
	seats  map[forge.RunnerID][]*seat // connections with the certificate of each, oldest first
	voices map[forge.RunnerID]*conn   // that are in step
}

// New returns a Server. It starts nothing.
func New(cfg Config) (*Server, error) {
	if cfg.Store == nil || cfg.Logs == nil || cfg.Desk == nil {
		return nil, errors.New("agents: a store, logs and a desk for certificates are needed")
	}
	if err := cfg.Policy.Validate(); err != nil {
		return nil, err
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Control == nil {
		cfg.Control = nobody{}
	}
	if cfg.Spread == 0 {
		cfg.Spread = 5 * time.Second
	}
	if cfg.Link.Terms.Versions == nil {
		cfg.Link.Terms = protocol.OwnTerms()
	}
	s := &Server{
		cfg: cfg, boot: clock.Boot, core: core.New(core.Config{Policy: cfg.Policy, Seed: ident.Seed()}),
		conns: map[core.ConnID]*conn{}, audits: map[auditKey]int{}, events: make(chan func(), 256), loopEnd: make(chan struct{}),
		places: make(chan struct{}, MaxConns), budget: semaphore.NewWeighted(MaxLogBytes),
		seats: map[forge.RunnerID][]*seat{}, voices: map[forge.RunnerID]*conn{},
	}
	s.objects = remote.NewServer(remote.ServerConfig{Log: cfg.Log})
	cfg.Metrics.moves(s.objects.Figures)
	s.serving, s.halt = context.WithCancel(context.Background())
	s.work, s.stopWork = context.WithCancel(context.Background())
	s.cfg.Link.Software, s.cfg.Link.Log, s.cfg.Link.Observer = cfg.Software, cfg.Log, (*observer)(s)
	return s, nil
}
