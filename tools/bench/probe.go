//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/forgeyard/forgeyard/internal/daemon/agents"
	"github.com/forgeyard/forgeyard/internal/daemon/enrolment"
	"github.com/forgeyard/forgeyard/internal/daemon/logs"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/runner"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// roundTrips are made for one value, of which it is the median.
const roundTrips = 400

// framePause is how long the frames of one measurement take to be forgotten by the links, which let an agent and a daemon
// say 500 things a second for long, and more only at once. The limit waits as long.
const framePause = roundTrips * time.Second / 500

// rttFigure is how long a question to an agent takes that nobody has to decide or to write down: through both of the
// cores' loops, the gates, the codec, and a look at the machine. Both ends are in this process, and so are those of the
// limit.
var rttFigure = figure{
	name: "control.rtt", unit: "µs", limitIs: "64 bytes there and back over bare QUIC, both ends in one process as well",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y := &probeYard{}
		if err := y.begin(ctx); err != nil {
			return pair{}, errors.Join(err, y.close())
		}
		return pair{
			ours:  func(ctx context.Context) (float64, error) { return halfway(ctx, y.probe) },
			limit: func(ctx context.Context) (float64, error) { return halfway(ctx, y.echo) },
			end:   func() { _ = y.close() },
		}, nil
	},
}

// halfway is the median of how long something takes, in microseconds.
func halfway(ctx context.Context, do func(context.Context) error) (float64, error) {
	select {
	case <-time.After(framePause):
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	took := make([]float64, roundTrips)
	for i := range took {
		begun := time.Now()
		if err := do(ctx); err != nil {
			return 0, err
		}
		took[i] = float64(time.Since(begun)) / float64(time.Microsecond)
	}
	return median(took), nil
}

// probeYard is a daemon's edge with a real agent, and a bare server with a client.
type probeYard struct {
	ca     *trust.CA
	runner forge.RunnerID
	server *agents.Server
	bare   *bare.Client
	ends   []func() error // in the order of start
}

func (y *probeYard) probe(ctx context.Context) error {
	_, err := y.server.Probe(ctx, y.runner)
	return err
}

func (y *probeYard) echo(context.Context) error { return y.bare.Echo(64) }

// close ends everything, what uses something before it.
func (y *probeYard) close() error {
	var errs []error
	for len(y.ends) > 0 {
		last := len(y.ends) - 1
		errs = append(errs, y.ends[last]())
		y.ends = y.ends[:last]
	}
	return errors.Join(errs...)
}

func (y *probeYard) later(end func() error) { y.ends = append(y.ends, end) }

// run starts something that runs until its context ends.
func (y *probeYard) run(serve func(context.Context) error) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- serve(ctx) }()
	y.later(func() error {
		cancel()
		return <-ended
	})
}

func (y *probeYard) begin(ctx context.Context) error {
	folder, err := os.MkdirTemp("", "fybench")
	if err != nil {
		return err
	}
	y.later(func() error { return os.RemoveAll(folder) })
	if err := y.beginBare(ctx); err != nil {
		return err
	}
	endpoint, err := y.beginDaemon(ctx, filepath.Join(folder, "daemon"))
	if err != nil {
		return err
	}
	if err := y.beginAgent(ctx, filepath.Join(folder, "agent"), endpoint); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for {
		err := y.probe(ctx)
		if !errors.Is(err, agents.ErrNotConnected) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond): // until it has connected
		case <-ctx.Done():
			return fmt.Errorf("wait for the agent: %w", err)
		}
	}
}

func (y *probeYard) beginBare(ctx context.Context) error {
	credentials, err := bare.NewCredentials()
	if err != nil {
		return err
	}
	server, err := bare.Listen(credentials, bare.Drop)
	if err != nil {
		return err
	}
	y.later(server.Close)
	y.bare, err = bare.Dial(ctx, credentials, server.Addr().String())
	return err
}

// beginDaemon starts what a daemon has for its agents, and returns where that listens.
func (y *probeYard) beginDaemon(ctx context.Context, folder string) (string, error) {
	db, err := store.Open(ctx, folder, store.Options{})
	if err != nil {
		return "", err
	}
	y.later(db.Close)
	kept, err := logs.Open(logs.Config{Dir: filepath.Join(folder, "logs"), Rows: logs.RowsOf(db)})
	if err != nil {
		return "", err
	}
	y.later(kept.Close)
	if y.ca, err = trust.NewCA(trust.NewCluster(), time.Now()); err != nil {
		return "", err
	}
	y.runner = ident.New[forge.RunnerID]()
	err = db.Update(ctx, store.ClassState, func(tx *store.Tx) error {
		return tx.CreateRunner(store.NewRunner{
			ID: y.runner, Name: "bench", Pool: forge.DefaultPool, Trust: forge.TrustTrusted, Slots: 1,
		})
	})
	if err != nil {
		return "", err
	}
	y.server, err = agents.New(agents.Config{
		Store: db, Logs: kept, Policy: forge.DefaultLeasePolicy(), Software: "bench", Cluster: y.ca.Cluster(),
		Desk: enroll.NewDesk(enroll.DeskConfig{CA: y.ca, Store: enrolment.New(db)}),
	})
	if err != nil {
		return "", err
	}
	certificate, err := y.ca.IssueDaemon([]string{"127.0.0.1"}, time.Now())
	if err != nil {
		return "", err
	}
	listener, err := quic.Listen("127.0.0.1:0", trust.ServerTLS(trust.Server{
		Roots: y.ca.Roots(), Certificates: trust.NewSource(certificate),
		Standing: func(forge.RunnerID, trust.Serial) error { return nil },
	}), quic.Options{})
	if err != nil {
		return "", err
	}
	y.run(func(ctx context.Context) error { return y.server.Serve(ctx, listener) })
	return listener.Addr().String(), nil
}

// beginAgent starts an agent that is enrolled.
func (y *probeYard) beginAgent(ctx context.Context, folder, endpoint string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	own, err := trust.OpenFolder(runner.TrustDir(folder))
	if err != nil {
		return err
	}
	key, err := own.Key()
	if err != nil {
		return err
	}
	identity, err := identify(y.ca, key, y.runner)
	if err != nil {
		return err
	}
	if err := own.Save(identity); err != nil {
		return err
	}
	agent, err := runner.New(ctx, runner.Config{
		State: folder, Endpoints: []string{endpoint}, Version: "bench",
		Roads: func(roots trust.Roots, certificates *trust.Source) (agents, recovery transport.Dialer) {
			client := trust.Client{Roots: roots, Certificates: certificates}
			known, unknown := quic.NewDialer(trust.AgentTLS(client), quic.Options{}), quic.NewDialer(trust.RecoverTLS(client), quic.Options{})
			y.later(known.Close)
			y.later(unknown.Close)
			return known, unknown
		},
		Executors: func(state string) ([]executor.Executor, error) {
			e, err := process.New(process.Config{State: state})
			return []executor.Executor{e}, err
		},
	})
	if err != nil {
		return err
	}
	y.run(func(ctx context.Context) error {
		_, err := agent.Run(ctx)
		return err
	})
	return nil
}
