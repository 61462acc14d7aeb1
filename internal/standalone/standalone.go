// Package standalone is daemon and agent in one process: real QUIC with mutual TLS on loopback, a real store, a CA in the
// data folder. Nothing is short-cut, so what runs here runs the same on many machines.
//
//	DATA/daemon   the daemon's folder, with http.sock, by which other processes of this user find it
//	DATA/agent    the agent's state folder; it enrols itself the first time
//
// A folder has one owner. Who comes second asks the first one (Find), and the owner goes on until the runs of the others
// have ended, too.
//
// Jobs run in sandboxes. The agent here allows plain processes, too, because whoever can start it can run anything anyway;
// but they are not what a job gets that asked for nothing, unless the user said so.
//
// Run owns the goroutines of daemon and agent. All have ended when it returns: first the agent, then the daemon.
package standalone

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/forgeyard/forgeyard/internal/agent"
	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/daemon"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/runner"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// Bounds of waiting.
const (
	findWithin = 2 * time.Second        // for the owner of a folder to answer
	handOver   = 15 * time.Second       // for a folder's owner to answer or to let go
	lookEvery  = 200 * time.Millisecond // at what nobody tells about
)

// Yard starts daemon and agent. It implements cli.Local.
type Yard struct {
	Version string
	Getenv  func(string) string
}

// Find returns the endpoint of the process that owns a data folder, or "" if nobody does.
func (Yard) Find(data string) string {
	socket := filepath.Join(data, "daemon", "http.sock")
	if _, err := os.Stat(socket); err != nil {
		return ""
	}
	client, err := api.NewClient("unix://"+socket, api.Options{Timeout: findWithin})
	if err != nil {
		return ""
	}
	defer client.Close()
	if _, err := client.Version(context.Background()); err != nil {
		return ""
	}
	return "unix://" + socket
}

// errDone is the cause with which daemon and agent are stopped.
var errDone = errors.New("done")

// Run implements cli.Local.
func (y Yard) Run(ctx, force context.Context, o cli.LocalOptions, use func(context.Context, string) error) error {
	if err := program.Guard(); err != nil {
		o.Log.Warn("jobs may read what this process knows", telemetry.KeyError, err)
	}
	err := y.untilOwned(ctx, o.Data, func() error { return y.ownUntilDone(ctx, force, o, use) }, func(endpoint string) error {
		return use(context.WithoutCancel(ctx), endpoint)
	})
	if none := (*agent.NoSandbox)(nil); errors.As(err, &none) {
		return &cli.NoSandbox{Err: none.Err}
	}
	if taken := (*daemon.AddressError)(nil); errors.As(err, &taken) {
		return program.Exit(program.CodeInfrastructure, fmt.Errorf("%w\nMake it free, or use another: --listen HOST:PORT", taken))
	}
	return err
}

// A part is the daemon or the agent.
type part struct {
	stop  context.CancelCauseFunc
	ended chan struct{}
	err   error // once ended is closed
}

// start runs a part. Its end by itself ends whoever uses it.
func start(ctx context.Context, name string, end context.CancelCauseFunc, run func(context.Context) error) *part {
	ctx, stop := context.WithCancelCause(ctx)
	p := &part{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		if p.err = run(ctx); p.err != nil {
			p.err = fmt.Errorf("%s: %w", name, p.err)
		}
		end(errors.Join(p.err, fmt.Errorf("%s has ended", name)))
	}()
	return p
}

// close stops a part and waits for it.
func (p *part) close() error {
	p.stop(errDone)
	<-p.ended
	return p.err
}

// ownUntilDone is own, again for whoever has submitted a run while this process was about to stop serving: that was accepted, and
// has to end.
func (y Yard) ownUntilDone(ctx, force context.Context, o cli.LocalOptions, use func(context.Context, string) error) error {
	served := false
	err := y.own(ctx, force, o, func(serving context.Context, endpoint string) error {
		served = true
		return use(serving, endpoint)
	})
	o.Unconfined = nil // it was told
	for served && ctx.Err() == nil && force.Err() == nil && owed(ctx, o.Data) {
		if y.own(ctx, force, o, func(context.Context, string) error { return nil }) != nil {
			break // another process may have become the owner
		}
	}
	return err
}

// owed reports whether a run in a folder that nobody serves has not ended.
func owed(ctx context.Context, data string) bool {
	s, err := store.Open(ctx, filepath.Join(data, "daemon"), store.Options{})
	if err != nil {
		return false // another process has it
	}
	var left []store.Run
	err = s.View(ctx, func(v *store.View) (err error) {
		left, _, err = v.Runs(store.RunFilter{States: []forge.RunState{forge.RunPlanned, forge.RunRunning}, Limit: 1})
		return err
	})
	return errors.Join(err, s.Close()) == nil && len(left) > 0
}

// own makes this process the owner of the folder for as long as use takes.
func (y Yard) own(ctx, force context.Context, o cli.LocalOptions, use func(context.Context, string) error) (err error) {
	base, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	begun := time.Now()
	d, err := daemon.New(y.daemonConfig(o))
	if err != nil {
		return err
	}
	serving := start(context.WithoutCancel(ctx), "daemon", end, d.Run)
	defer func() { err = errors.Join(err, serving.close()) }()
	select {
	case <-d.Ready():
	case <-serving.ended:
		return nil // its error is joined
	}
	at := d.Addresses()
	if at.Socket == "" {
		return tooLong(o.Data)
	}
	client, err := api.NewClient(at.Socket, api.Options{})
	if err != nil {
		return err
	}
	defer client.Close()
	settings := y.agentOptions(o, at.Agents)
	settings.InPlace = inPlace(d.Objects())
	confined := make(chan error, 1)
	settings.Sandbox.Tell = func(why error) { confined <- why }
	if err := errors.Join(y.enrol(base, client, settings, at), takeOver(base, client, o, begun)); err != nil {
		return err
	}
	ended := func(why error) {
		if force.Err() == nil { // else that was asked for, and who uses it leaves by itself and says more
			end(why)
		}
	}
	working := start(context.WithoutCancel(ctx), "agent", ended, func(ctx context.Context) error { return agent.Run(ctx, force, settings) })
	defer func() { err = errors.Join(err, quiet(working.close(), force)) }()
	select {
	case why := <-confined:
		if why != nil && o.Unconfined != nil {
			o.Unconfined(why)
		}
	case <-working.ended:
		return nil // its error is joined
	}
	err = use(base, at.Socket)
	if cause := context.Cause(base); cause != nil {
		return cause
	}
	if othersEnd(ctx, force, base, client, o.Log) {
		err = errors.Join(err, forget(o.Data))
	}
	return err
}

func tooLong(data string) error {
	return fmt.Errorf("the path of the data folder %s is too long for a socket in it; use a shorter one: --data DIR", data)
}

// quiet drops the error of an agent that was forced to stop, because that was asked for.
func quiet(err error, force context.Context) error {
	if force.Err() != nil {
		return nil
	}
	return err
}

func (y Yard) daemonConfig(o cli.LocalOptions) daemon.Config {
	http := o.Listen
	if http == "" {
		http = daemon.NoHTTP
	}
	return daemon.Config{
		Dir: filepath.Join(o.Data, "daemon"), Listen: "127.0.0.1:0", HTTP: http, Version: y.Version,
		Log: o.Log.With(telemetry.KeyProgram, "daemon"),
	}
}

// The runner here.
const runnerName = "local"

func (y Yard) agentOptions(o cli.LocalOptions, endpoint string) agent.Options {
	return agent.Options{
		State: filepath.Join(o.Data, "agent"), Endpoints: []string{endpoint}, Slots: max(2, runtime.NumCPU()), Version: y.Version,
		Policy: forge.LocalPolicy{AllowHostNetwork: true, AllowUnconfined: true},
		Path:   y.path(), Env: o.Env, Log: o.Log.With(telemetry.KeyProgram, "agent"),
		Sandbox: agent.Sandbox{Need: !o.AllowUnsandboxed, ReadOnly: o.ReadOnly, Toolchains: o.Toolchains, Hide: []string{o.Data}, Pool: 1},
	}
}

// path is this user's PATH (D12). In a sandbox that counts which it shows.
func (y Yard) path() []string {
	var dirs []string
	for _, dir := range filepath.SplitList(y.Getenv("PATH")) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}

// enrol makes the agent a runner of the daemon, the first time.
func (y Yard) enrol(ctx context.Context, client *api.Client, o agent.Options, at daemon.Addresses) error {
	known, err := y.enrolled(ctx, client, o, at)
	if known || err != nil {
		return err
	}
	slots := uint32(o.Slots)
	made, err := client.CreateToken(ctx, &api.TokenRequest{Name: runnerName, Slots: &slots})
	if err != nil {
		return fmt.Errorf("make a token for the agent: %w", err)
	}
	token, err := trust.ParseToken([]byte(made.Token))
	if err != nil {
		return err
	}
	defer token.Wipe()
	_, err = agent.Enroll(ctx, o, token, runnerName)
	return err
}

// enrolled reports whether the agent of the folder is a runner of this daemon. One that was deleted here gives its
// certificate up, and is made anew.
func (y Yard) enrolled(ctx context.Context, client *api.Client, o agent.Options, at daemon.Addresses) (bool, error) {
	id, ok, err := agent.Enrolled(o.State)
	if err != nil || !ok {
		return false, err
	}
	ca, err := trust.ParseFingerprint(at.Fingerprint)
	if err != nil {
		return false, err
	}
	if !id.Roots().Has(ca) {
		return false, fmt.Errorf("the agent in %s belongs to another daemon; move that folder away, and a new agent is made", o.State)
	}
	_, err = client.Runner(ctx, id.Runner().String())
	if problem := new(api.Problem); errors.As(err, &problem) && problem.Code == api.CodeNotFound {
		return false, os.RemoveAll(runner.TrustDir(o.State))
	}
	return err == nil, err
}

// othersEnd waits until the runs of other processes have ended, or nobody wants to wait. It reports whether they have.
func othersEnd(ctx, force, base context.Context, client *api.Client, log *slog.Logger) bool {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		busy, err := unfinished(base, client)
		if err != nil {
			log.Warn("cannot see whether others still have runs here", telemetry.KeyError, err)
			return false
		}
		if !busy {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-force.Done():
			return false
		case <-base.Done():
			return false
		case <-tick.C:
		}
	}
}

// unfinishedStates are those of a run that has not ended.
var unfinishedStates = []string{"Planned", "Running"}

// unfinished reports whether any run has not ended.
func unfinished(ctx context.Context, client *api.Client) (bool, error) {
	for _, state := range unfinishedStates {
		list, err := client.Runs(ctx, api.RunFilter{State: state}, api.Page{Limit: 1})
		if err != nil {
			return false, err
		}
		if len(list.Items) > 0 {
			return true, nil
		}
	}
	return false, nil
}
