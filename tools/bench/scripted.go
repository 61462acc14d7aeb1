//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/time/rate"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// scriptedAgent is an agent with a certificate, a road and nothing else: it says what a measurement needs.
type scriptedAgent struct {
	runner forge.RunnerID
	folder forge.StateFolderID
	boot   forge.BootID
	starts uint64
	nonce  forge.Nonce
	dialer *quic.Dialer

	session forge.AgentSessionID
	link    *link.Link // once it is connected
}

// newScripted makes a runner with some slots, and gives it a certificate of the daemon's own CA, without the way over a
// token.
func newScripted(ctx context.Context, client *api.Client, ca *trust.CA, name string, slots uint32) (*scriptedAgent, error) {
	made, err := client.CreateRunner(ctx, &api.RunnerRequest{Name: name, Slots: &slots})
	if err != nil {
		return nil, err
	}
	runner, err := forge.ParseID[forge.RunnerID](made.Runner.ID)
	if err != nil {
		return nil, err
	}
	key, err := trust.NewKey()
	if err != nil {
		return nil, err
	}
	identity, err := identify(ca, key, runner)
	if err != nil {
		return nil, err
	}
	settings := trust.AgentTLS(trust.Client{Roots: identity.Roots(), Certificates: trust.NewSource(identity.TLS())})
	return &scriptedAgent{
		runner: runner, folder: ident.New[forge.StateFolderID](), boot: ident.New[forge.BootID](),
		dialer: quic.NewDialer(settings, quic.Options{}),
	}, nil
}

// caOf loads the CA of a fleet's daemon.
func caOf(f *fleet.Fleet) (*trust.CA, error) {
	return trust.LoadCA(filepath.Join(f.Daemon.Folder, "trust"))
}

// identify gives a key a certificate of a CA.
func identify(ca *trust.CA, key trust.Key, runner forge.RunnerID) (*trust.Identity, error) {
	der, err := trust.NewRequest(key)
	if err != nil {
		return nil, err
	}
	request, err := trust.ParseRequest(der)
	if err != nil {
		return nil, err
	}
	certificate, err := ca.IssueRunner(request, runner, time.Now(), 24*time.Hour)
	if err != nil {
		return nil, err
	}
	return trust.NewIdentity(key, [][]byte{certificate.Raw}, [][]byte{ca.Certificate().Raw})
}

// close ends its connection and its socket.
func (a *scriptedAgent) close() {
	if a.link != nil {
		a.link.Close(forge.CloseNormal)
		a.link = nil
	}
	_ = a.dialer.Close()
}

// connect makes it a process that starts anew: it connects, says who it is, and is in step with the daemon.
func (a *scriptedAgent) connect(ctx context.Context, endpoint string, capabilities forge.Capabilities) error {
	if a.link != nil {
		a.link.Close(forge.CloseNormal)
		a.link = nil
	}
	conn, err := a.dialer.Dial(ctx, endpoint)
	if err != nil {
		return err
	}
	a.link, err = link.Connect(ctx, conn, link.Config{Role: protocol.RoleAgent, Software: "bench"}, forge.AgentSessionID{})
	if err != nil {
		return err
	}
	a.session = ident.New[forge.AgentSessionID]()
	a.starts, a.nonce = a.starts+1, a.nonce+1
	if err := a.say(ctx, &forge.Register{
		Runner: a.runner, Session: a.session, StateFolder: a.folder, Boot: a.boot, StartCounter: a.starts, TransportSeq: 1,
		Version: "bench", Capabilities: capabilities, CapabilityDigest: capabilities.Digest(),
	}); err != nil {
		return err
	}
	if _, err := hear[*forge.RegistrationAccepted](ctx, a); err != nil {
		return err
	}
	resync := &forge.Resync{Runner: a.runner, Session: a.session, Nonce: a.nonce, CapabilityDigest: capabilities.Digest()}
	if err := a.say(ctx, resync); err != nil {
		return err
	}
	_, err = hear[*forge.ResyncReply](ctx, a)
	return err
}

func (a *scriptedAgent) say(ctx context.Context, m forge.Message) error {
	return a.link.Send(ctx, forge.Frame{ID: ident.New[forge.MessageID](), Body: m})
}

// hear waits for a message of a kind and forgets others.
func hear[M forge.Message](ctx context.Context, a *scriptedAgent) (M, error) {
	for {
		got, err := a.link.Receive(ctx)
		if err != nil {
			var none M
			return none, fmt.Errorf("wait for %T: %w", none, err)
		}
		if m, ok := got.Domain.(M); ok {
			return m, nil
		}
	}
}

// newDialRate is as many handshakes as a daemon takes from one network.
func newDialRate() *rate.Limiter { return rate.NewLimiter(40, 100) }

// patiently connects as often as the daemon says that it has too much to do.
func (a *scriptedAgent) patiently(ctx context.Context, pace *rate.Limiter, endpoint string, capabilities forge.Capabilities) error {
	for {
		if err := pace.Wait(ctx); err != nil {
			return err
		}
		err := a.connect(ctx, endpoint, capabilities)
		if closed, ok := errors.AsType[*transport.CloseError](err); !ok || closed.Reason != forge.CloseOverloaded {
			return err
		}
	}
}

// ableTo is what an agent says of itself that takes any job of this package, so many at a time.
func ableTo(slots uint32) forge.Capabilities {
	return forge.Capabilities{
		SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"},
		Resources: forge.Resources{CPU: 64_000, Memory: 64 * forge.GiB, Disk: forge.TiB, Slots: slots},
		Sandboxes: []forge.Sandbox{{Kind: forge.SandboxProcess}}, Features: []string{forge.FeatureHostNetwork},
	}
}

// take submits some jobs and accepts them.
func (a *scriptedAgent) take(ctx context.Context, client *api.Client, jobs int, edit func(*api.JobSpec)) ([]forge.AttemptContext, error) {
	request := fleet.Shell("true", func(s *api.JobSpec) { s.Sandbox = &api.Sandbox{Kind: "process"} }, edit) // all that the scripted agent has
	job := request.Jobs[0]
	request.Jobs = nil
	for i := range jobs {
		job.Key = fmt.Sprintf("job-%d", i)
		request.Jobs = append(request.Jobs, job)
	}
	if _, err := client.Submit(ctx, request, ident.New[forge.MessageID]().String()); err != nil {
		return nil, err
	}
	var attempts []forge.AttemptContext
	for granted := 0; granted < jobs; {
		got, err := a.link.Receive(ctx)
		if err != nil {
			return nil, err
		}
		switch m := got.Domain.(type) {
		case *forge.LeaseOffer:
			attempts = append(attempts, m.Context)
			a.nonce++
			err = a.say(ctx, &forge.LeaseAccept{Context: m.Context, Nonce: a.nonce})
		case *forge.LeaseAcceptAck:
			if granted++; !m.Granted {
				err = errors.New("a lease was not granted")
			}
		}
		if err != nil {
			return nil, err
		}
	}
	return attempts, nil
}

// complete ends attempts whose logs are sealed.
func (a *scriptedAgent) complete(ctx context.Context, attempts []forge.AttemptContext, seal forge.LogSeal) error {
	for _, c := range attempts {
		done := &forge.Completion{
			Context: c, Message: ident.New[forge.MessageID](), Capture: forge.Succeeded, Log: seal,
			Result: forge.Result{Class: forge.Succeeded, Duration: time.Second, Steps: []forge.StepResult{{Class: forge.Succeeded}}},
		}
		done.Hash = done.ResultHash()
		if err := a.link.Send(ctx, forge.Frame{ID: done.Message, Body: done}); err != nil {
			return err
		}
		ack, err := hear[*forge.CompletionAck](ctx, a)
		if err != nil {
			return err
		}
		if ack.Answer != forge.CompletionAccepted {
			return fmt.Errorf("the end of an attempt was answered with %v", ack.Answer)
		}
	}
	return nil
}
