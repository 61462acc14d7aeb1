//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/transport/quic/bare"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// idleAgents is how many agents are connected and have nothing to do.
const idleAgents = 500

// dialing is how many of them connect at the same time.
const dialing = 8

// idleFigure is what an agent that is registered and idle costs its daemon in memory, against a connection of a program
// that has only the road.
var idleFigure = figure{
	name: "agents.idle", unit: "KiB", limitIs: "resident memory of one bare mutually authenticated connection with one stream",
	begin: func(ctx context.Context, _ options) (pair, error) {
		return pair{ours: idleDaemon, limit: idleBare, end: func() {}}, nil
	},
}

// idleDaemon measures a daemon, a process of its own, without agents and with them.
func idleDaemon(ctx context.Context) (float64, error) {
	f, end, err := newFleet(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	agents, err := enrolled(ctx, f)
	if err != nil {
		return 0, err
	}
	before, err := resident(f.Daemon.PID())
	if err != nil {
		return 0, err
	}
	links := make([]*link.Link, len(agents))
	defer func() {
		for _, l := range links {
			if l != nil {
				l.Close(forge.CloseNormal)
			}
		}
	}()
	work, workCtx := errgroup.WithContext(ctx)
	work.SetLimit(dialing)
	for i, a := range agents {
		work.Go(func() (err error) {
			links[i], err = a.register(workCtx, f.Daemon.Endpoint())
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return 0, err
	}
	after, err := resident(f.Daemon.PID())
	return float64(after-before) / 1024 / float64(len(agents)), err
}

// idleAgent is an agent with a certificate and nothing else.
type idleAgent struct {
	runner forge.RunnerID
	dialer *quic.Dialer
}

// enrolled makes runners and gives each a certificate of the daemon's own CA, without the way over a token.
func enrolled(ctx context.Context, f *fleet.Fleet) ([]idleAgent, error) {
	client, err := f.Daemon.Client()
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ca, err := trust.LoadCA(filepath.Join(f.Daemon.Folder, "trust"))
	if err != nil {
		return nil, err
	}
	agents := make([]idleAgent, idleAgents)
	for i := range agents {
		made, err := client.CreateRunner(ctx, &api.RunnerRequest{Name: fmt.Sprintf("idle-%d", i)})
		if err != nil {
			return nil, err
		}
		if agents[i], err = newIdleAgent(ca, made.Runner.ID); err != nil {
			return nil, err
		}
	}
	return agents, nil
}

func newIdleAgent(ca *trust.CA, id string) (idleAgent, error) {
	runner, err := forge.ParseID[forge.RunnerID](id)
	if err != nil {
		return idleAgent{}, err
	}
	key, err := trust.NewKey()
	if err != nil {
		return idleAgent{}, err
	}
	der, err := trust.NewRequest(key)
	if err != nil {
		return idleAgent{}, err
	}
	request, err := trust.ParseRequest(der)
	if err != nil {
		return idleAgent{}, err
	}
	certificate, err := ca.IssueRunner(request, runner, time.Now(), 24*time.Hour)
	if err != nil {
		return idleAgent{}, err
	}
	identity, err := trust.NewIdentity(key, [][]byte{certificate.Raw}, [][]byte{ca.Certificate().Raw})
	if err != nil {
		return idleAgent{}, err
	}
	settings := trust.AgentTLS(trust.Client{Roots: identity.Roots(), Certificates: trust.NewSource(identity.TLS())})
	return idleAgent{runner: runner, dialer: quic.NewDialer(settings, quic.Options{})}, nil
}

// register connects, says who it is, and is in step with the daemon.
func (a idleAgent) register(ctx context.Context, endpoint string) (*link.Link, error) {
	conn, err := a.dialer.Dial(ctx, endpoint)
	if err != nil {
		return nil, err
	}
	l, err := link.Connect(ctx, conn, link.Config{Role: protocol.RoleAgent, Software: "bench"}, forge.AgentSessionID{})
	if err != nil {
		return nil, err
	}
	capabilities := forge.Capabilities{SchemaVersion: forge.CapabilitySchema, Platform: forge.Platform{OS: "linux", Arch: "amd64"}}
	session := ident.New[forge.AgentSessionID]()
	var same digest.Digest = capabilities.Digest()
	for _, m := range []forge.Message{
		&forge.Register{
			Runner: a.runner, Session: session, StateFolder: ident.New[forge.StateFolderID](), Boot: ident.New[forge.BootID](),
			StartCounter: 1, TransportSeq: 1, Version: "bench", Capabilities: capabilities, CapabilityDigest: same,
		},
		&forge.Resync{Runner: a.runner, Session: session, Nonce: 1, CapabilityDigest: same},
	} {
		if err := l.Send(ctx, forge.Frame{ID: ident.New[forge.MessageID](), Body: m}); err != nil {
			return nil, err
		}
		if _, err := l.Receive(ctx); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// idleBare measures a bare server, a process of its own, without clients and with them.
func idleBare(ctx context.Context) (_ float64, err error) {
	credentials, err := bare.NewCredentials()
	if err != nil {
		return 0, err
	}
	certificate, key, err := credentials.DER()
	if err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	server := exec.CommandContext(ctx, self, "-role", "bare-server")
	server.Stderr = os.Stderr
	in, err := server.StdinPipe()
	if err != nil {
		return 0, err
	}
	out, err := server.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() {
		_ = in.Close()
		_ = server.Wait() // its end is asked for, its code means nothing
	}()
	encode := base64.StdEncoding.EncodeToString
	if _, err := fmt.Fprintf(in, "%s %s\n", encode(certificate), encode(key)); err != nil {
		return 0, err
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return 0, err
	}
	before, err := resident(server.Process.Pid)
	if err != nil {
		return 0, err
	}
	clients := make([]*bare.Client, idleAgents)
	defer func() {
		for _, c := range clients {
			if c != nil {
				c.Close()
			}
		}
	}()
	work, workCtx := errgroup.WithContext(ctx)
	work.SetLimit(dialing)
	for i := range clients {
		work.Go(func() (err error) {
			if clients[i], err = bare.Dial(workCtx, credentials, strings.TrimSpace(addr)); err != nil {
				return err
			}
			return clients[i].Echo(64)
		})
	}
	if err := work.Wait(); err != nil {
		return 0, err
	}
	after, err := resident(server.Process.Pid)
	return float64(after-before) / 1024 / idleAgents, err
}

// bareServer is the role of the server: it reads credentials, prints its address, and serves until its input ends.
func bareServer(in io.Reader, out io.Writer) error {
	reader := bufio.NewReader(in)
	var certificate, key string
	if _, err := fmt.Fscan(reader, &certificate, &key); err != nil {
		return err
	}
	credentials, err := bare.ParseCredentials(certificate, key)
	if err != nil {
		return err
	}
	server, err := bare.Listen(credentials)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, server.Addr()); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, reader) // until the parent is done
	return server.Close()
}

// resident is the memory of a process in bytes, as the system counts it.
func resident(pid int) (int64, error) {
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, err
	}
	var size, pages int64
	if _, err := fmt.Sscan(string(content), &size, &pages); err != nil {
		return 0, err
	}
	return pages * int64(os.Getpagesize()), nil
}
