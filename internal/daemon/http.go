package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/daemon/access"
	"github.com/forgeyard/forgeyard/internal/daemon/agents"
	"github.com/forgeyard/forgeyard/internal/daemon/httpapi"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
)

// httpWithin bounds the end of requests that are under way when the daemon stops.
const httpWithin = 5 * time.Second

func (d *Daemon) openHTTP(_ context.Context, stack *program.Stack, p *parts) error {
	token, err := adminToken(d.cfg.Dir)
	if err != nil {
		return err
	}
	p.access = access.New(p.store, token, time.Now, d.cfg.Log)
	p.api = httpapi.New(httpapi.Config{
		Store: p.store, Control: p.control, Logs: p.logs, Objects: p.objects, Secrets: p.secrets, Events: logv1.DecodeEvent,
		Access:   p.access,
		Ready:    func(ctx context.Context) []api.Check { return checks(ctx, p) },
		Sessions: func() []api.Session { return sessions(p.agents.Sessions()) },
		Speaks: func(id forge.RunnerID) string {
			if v, ok := p.agents.Version(id); ok {
				return v.String()
			}
			return ""
		},
		Status: func() api.TransportStatus {
			return api.TransportStatus{
				Listen: p.listener.Addr().String(), Fingerprint: p.ca.Fingerprint().String(), Connections: len(p.agents.Sessions()),
				Version: d.cfg.Version,
			}
		},
		Protocols: d.protocols(), Version: api.Version{Version: d.cfg.Version, Protocol: d.protocols().Most},
		Fingerprint: p.ca.Fingerprint().String(), Metrics: d.cfg.Metrics, Log: d.cfg.Log,
	})
	socket, err := listenSocket(d.cfg.Dir, d.cfg.Socket)
	if err != nil {
		return fmt.Errorf("listen on the folder's socket: %w", err)
	}
	if socket == nil {
		d.cfg.Log.Warn("the folder's path is too long for a socket in it; use HTTP with the token", "most", maxSocketPath)
	} else {
		serve(stack, "http socket", p.api, httpapi.Socket, socket)
	}
	var tcp net.Listener
	if d.cfg.HTTP != NoHTTP {
		if tcp, err = net.Listen("tcp", d.cfg.HTTP); err != nil {
			return &AddressError{For: "HTTP", Address: d.cfg.HTTP, Err: err}
		}
		if !onlyHere(tcp.Addr()) {
			d.cfg.Log.Warn("HTTP can be reached from other machines, and the token travels readable: put TLS in front of it", "http", tcp.Addr().String())
		}
		serve(stack, "http", p.api, httpapi.TCP, tcp)
	}
	d.set(p, tcp, socket)
	return nil
}

// serve runs one way in until its turn to stop comes: no new request, streams end, the rest has httpWithin.
func serve(stack *program.Stack, name string, handler *httpapi.Server, over httpapi.Over, l net.Listener) {
	server := handler.HTTP(over)
	stack.Go(name, func(ctx context.Context) error {
		ended := make(chan error, 1)
		go func() { ended <- server.Serve(l) }()
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
		}
		handler.Stop()
		late, cancel := context.WithTimeout(context.WithoutCancel(ctx), httpWithin)
		defer cancel()
		if server.Shutdown(late) != nil {
			_ = server.Close() // what is still under way is cut
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
}

// checks looks at the parts of the daemon: whether the store takes a write, and agents are served.
func checks(ctx context.Context, p *parts) []api.Check {
	check := func(name string, err error) api.Check {
		if err != nil {
			return api.Check{Name: name, Detail: err.Error()}
		}
		return api.Check{Name: name, OK: true}
	}
	return []api.Check{
		check("store", p.store.Update(ctx, store.ClassRest, func(*store.Tx) error { return nil })),
		check("agents", p.notServing()),
	}
}

var errNotServing = errors.New("agents cannot connect: the daemon starts, or stops")

func (p *parts) notServing() error {
	if p.serving.Load() {
		return nil
	}
	return errNotServing
}

// sessions writes the connections of agents as they are shown.
func sessions(list []agents.Session) []api.Session {
	out := make([]api.Session, 0, len(list))
	for _, s := range list {
		one := api.Session{
			ID: s.Transport.String(), Runner: s.Runner.String(), Remote: s.Peer, State: s.State.String(), Protocol: s.Version.String(),
			Software: s.Software, SinceAt: &s.Opened,
		}
		if !s.Heartbeat.IsZero() {
			one.HeartbeatAt = &s.Heartbeat
		}
		if !s.Session.IsZero() {
			one.AgentSession = s.Session.String()
		}
		for _, f := range s.Features {
			one.Features = append(one.Features, f.String())
		}
		out = append(out, one)
	}
	return out
}

// protocols is what this daemon speaks with agents.
func (d *Daemon) protocols() api.Protocols {
	terms := d.cfg.Terms
	if terms.Versions == nil {
		terms = protocol.OwnTerms()
	}
	out := api.Protocols{ALPN: []string{string(protocol.ALPNAgent), string(protocol.ALPNEnroll)}}
	var all []protocol.Version
	for _, r := range terms.Versions {
		all = append(all, protocol.Version{Major: r.Major, Minor: r.MinMinor}, protocol.Version{Major: r.Major, Minor: r.MaxMinor})
	}
	slices.SortFunc(all, protocol.Version.Compare)
	if len(all) > 0 {
		out.Least, out.Most = all[0].String(), all[len(all)-1].String()
	}
	for _, f := range terms.Features {
		out.Features = append(out.Features, f.String())
	}
	return out
}
