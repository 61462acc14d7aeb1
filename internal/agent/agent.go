// Package agent is the agent as one value: the loops of package runner with real roads and an executor, from its
// enrolment to its end. The command forgeyard-agent and package standalone use it.
//
// It decides nothing and keeps nothing. Run starts what package runner starts, and one goroutine that turns the end of a
// context into a request to stop; all of them have ended when Run returns.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/runner"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/runner/localstate"
	"github.com/forgeyard/forgeyard/internal/runner/objects"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Options are what an agent is made of.
type Options struct {
	State      string   // its folder; made if it is missing
	Endpoints  []string // host:port of daemons, in order of preference
	ServerName string   // that a daemon's certificate must carry; empty: that of its cluster
	Slots      int      // jobs at once
	Labels     []string
	Reserve    forge.Resources
	Policy     forge.LocalPolicy
	Path       []string // folders that come first in the PATH of jobs, where these can see them
	Sandbox    Sandbox
	Env        []forge.EnvVar // for every step
	Keep       objects.Limits // of what is kept for later jobs; zero has defaults
	// InPlace gives the daemon's store as an attempt may use it, where it is on this machine. nil: over the connection.
	InPlace func(of forge.AttemptContext) cas.Store
	Grace   time.Duration // for running jobs once it is asked to stop; 0: as long as they take
	Version string
	Log     *slog.Logger       // nil: silence
	Metrics *telemetry.Metrics // the registry of this process, in which no other agent is; nil: nothing is counted
}

func (o Options) log() *slog.Logger {
	if o.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return o.Log
}

// ErrEnrolled is returned by Enroll for a folder whose agent has a certificate already.
var ErrEnrolled = errors.New("this agent is enrolled already")

// Enrolled reports who the agent of a state folder is; ok is false if it has no certificate.
func Enrolled(state string) (id *trust.Identity, ok bool, err error) {
	if _, err := os.Stat(runner.TrustDir(state)); errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	folder, err := trust.OpenFolder(runner.TrustDir(state))
	if err != nil {
		return nil, false, err
	}
	id, err = folder.Load()
	if errors.Is(err, trust.ErrNotEnrolled) {
		return nil, false, nil
	}
	return id, err == nil, err
}

// Enroll gets the agent of a state folder its first certificate, from the first daemon that answers. name is what the
// daemon should call the runner where the token does not say. It may be called again after whatever went wrong: the same
// token gives the same runner. The error is ErrEnrolled where there is a certificate, localstate.ErrInUse while an agent
// runs there, an *enroll.Refused, or an *UnreachedError.
func Enroll(ctx context.Context, o Options, token trust.Token, name string) (_ *trust.Identity, err error) {
	if len(o.Endpoints) == 0 {
		return nil, errors.New("enrol: no endpoint of a daemon is named")
	}
	state, err := localstate.Open(o.State)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, state.Close()) }()
	folder, err := trust.OpenFolder(runner.TrustDir(o.State))
	if err != nil {
		return nil, err
	}
	if id, err := folder.Load(); !errors.Is(err, trust.ErrNotEnrolled) {
		if err == nil {
			err = fmt.Errorf("%w, as runner %v", ErrEnrolled, id.Runner())
		}
		return nil, err
	}
	key, err := folder.Key()
	if err != nil {
		return nil, err
	}
	id, err := o.askAll(ctx, token, key, name)
	if err != nil {
		return nil, err
	}
	if err := noteEndpoints(o.State, o.Endpoints); err != nil {
		return nil, err // before there is a certificate: the same token can be used again
	}
	return id, folder.Save(id)
}

// askAll asks one daemon after the other until one answers.
func (o Options) askAll(ctx context.Context, token trust.Token, key trust.Key, name string) (*trust.Identity, error) {
	dialer := quic.NewDialer(trust.EnrollTLS(token.CA(), o.ServerName, nil), quic.Options{Log: o.log()})
	defer func() { _ = dialer.Close() }() // nothing is under way on it any more
	var errs []error
	for _, endpoint := range o.Endpoints {
		id, err := o.ask(ctx, dialer, endpoint, token, key, name)
		if err == nil {
			return id, nil
		}
		if refused := new(enroll.Refused); errors.As(err, &refused) {
			return nil, fmt.Errorf("enrol at %s: %w", endpoint, refused) // another daemon of the cluster would say the same
		}
		errs = append(errs, &UnreachedError{endpoint, trust.Explain(err, time.Now())})
	}
	return nil, errors.Join(errs...)
}

// dialWithin bounds one try to reach a daemon, and to get its answer.
const dialWithin = 20 * time.Second

func (o Options) ask(ctx context.Context, dialer transport.Dialer, endpoint string, token trust.Token, key trust.Key, name string) (*trust.Identity, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	conn, err := dialer.Dial(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	return enroll.Enroll(ctx, conn, o.link(), token, key, name)
}

// link is how the agent talks before it is one: to be enrolled, and to be asked whether a daemon can be reached.
func (o Options) link() link.Config {
	return link.Config{Role: protocol.RoleAgent, Terms: protocol.OwnTerms(), Software: "forgeyard-agent " + o.Version, Log: o.log()}
}

// Reach connects to one daemon with the certificate of an enrolled agent, agrees with it on a version of the protocol, closes the
// connection, and returns how long that took. It does not register, so an agent that runs meanwhile is not disturbed.
func Reach(ctx context.Context, o Options, id *trust.Identity, endpoint string) (time.Duration, error) {
	client := trust.Client{Roots: id.Roots(), ServerName: o.ServerName, Certificates: trust.NewSource(id.TLS())}
	dialer := quic.NewDialer(trust.AgentTLS(client), quic.Options{Log: o.log()})
	defer func() { _ = dialer.Close() }() // nothing is under way on it any more
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	start := time.Now()
	conn, err := dialer.Dial(ctx, endpoint)
	took := time.Since(start)
	if err != nil {
		return took, &UnreachedError{endpoint, trust.Explain(err, time.Now())}
	}
	l, err := link.Connect(ctx, conn, o.link(), forge.AgentSessionID{})
	if err != nil {
		return took, &UnreachedError{endpoint, err}
	}
	l.Close(forge.CloseNormal)
	return took, nil
}

// Run runs the agent until it may not go on or has stopped. When ctx ends it takes no new job and stops once those that
// run are done, or Grace is over; when force ends it stops at once. The error carries the exit code.
func Run(ctx, force context.Context, o Options) (err error) {
	var roads []*quic.Dialer
	x := &executors{o: o}
	defer func() { err = errors.Join(err, x.close()) }() // all workloads have ended
	a, err := runner.New(ctx, o.config(ctx, &roads, x))
	defer func() {
		for _, road := range roads {
			_ = road.Close() // all connections on it have ended
		}
	}()
	if err != nil {
		return err
	}
	ended, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		stopper(ctx, ended, a, o.Grace)
	}()
	code, err := a.Run(force)
	close(ended)
	<-joined
	return errors.Join(endOf(code), err)
}

// stopper asks the agent to stop when ctx ends, and forces it when the grace is over.
func stopper(ctx context.Context, ended <-chan struct{}, a *runner.Agent, grace time.Duration) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
		a.Stop()
	}
	var over <-chan time.Time
	if grace > 0 {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-ended:
	case <-over:
		a.Force()
	}
}

func (o Options) config(ctx context.Context, roads *[]*quic.Dialer, x *executors) runner.Config {
	var metrics *runner.Metrics
	if o.Metrics != nil {
		metrics = runner.NewMetrics(o.Metrics, o.State)
	}
	return runner.Config{
		Metrics: metrics,
		State:   o.State, Endpoints: o.Endpoints, Slots: o.Slots, Labels: o.Labels, Reserve: o.Reserve, Policy: o.Policy,
		Env: o.Env, Keep: o.Keep, InPlace: o.InPlace, Version: o.Version, Log: o.log(),
		Roads: func(roots trust.Roots, certificates *trust.Source) (agents, recovery transport.Dialer) {
			client := trust.Client{Roots: roots, ServerName: o.ServerName, Certificates: certificates}
			options := quic.Options{Log: o.log().With(telemetry.KeyComponent, "transport")}
			known := quic.NewDialer(trust.AgentTLS(client), options)
			unknown := quic.NewDialer(trust.RecoverTLS(client), options)
			*roads = append(*roads, known, unknown)
			return known, unknown
		},
		Executors: func(state string) ([]executor.Executor, error) { return x.open(ctx, state) },
	}
}

// endOf turns the code with which an agent ends into an error that says what it means.
func endOf(code core.ExitCode) error {
	switch code {
	case core.ExitStopped:
		return nil
	case core.ExitForced:
		return program.Exit(program.CodeFailed, errors.New("stopped by force; jobs that ran were ended"))
	case core.ExitSuperseded:
		return program.Exit(program.CodeSuperseded, errors.New("another process speaks for this runner now, perhaps on a copy of this data folder; do not start this one again"))
	case core.ExitRevoked:
		return program.Exit(program.CodeRefused, errors.New("the daemon refuses this runner for good: its credential was revoked, or it was deleted. Enrol it anew in an empty data folder"))
	}
	return program.Exit(program.CodeFailed, fmt.Errorf("the agent ended with code %d", code))
}
