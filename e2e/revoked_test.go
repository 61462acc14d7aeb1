//go:build linux

package e2e_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/runner"
	"github.com/forgeyard/forgeyard/internal/runner/core"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// figures reads what the daemon says of its own process.
func (s *story) figures() map[string]float64 {
	s.t.Helper()
	socket := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", s.fleet.Daemon.Socket())
	}
	client := &http.Client{Transport: &http.Transport{DialContext: socket}}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, "http://daemon/metrics", nil)
	s.must(err)
	answer, err := client.Do(request)
	s.must(err)
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	s.must(err)
	found := map[string]float64{}
	for line := range strings.Lines(string(text)) {
		var name string
		var value float64
		if _, err := fmt.Sscan(line, &name, &value); err == nil {
			found[name] = value
		}
	}
	return found
}

// leaves waits, for as long as a runner may keep its connection that was put out, until it has none.
func (s *story) leaves(runner string) {
	s.t.Helper()
	const within = 8 * time.Second // five, and three for a machine that is busy
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	s.must(fleet.Await(ctx, "the runner to have no connection", func() (bool, error) {
		list, err := s.client.Sessions(ctx)
		if err != nil {
			return false, err
		}
		for _, c := range list.Items {
			if c.Runner == runner {
				return false, nil
			}
		}
		return true, nil
	}))
}

// A runner that is disabled or revoked has no connection soon after (09: five seconds); a thousand tries of a revoked one get
// it nothing and cost the daemon nothing that stays.
func TestADisabledAndARevokedRunnerAreOutAtOnceAndStayOut(t *testing.T) {
	s := newStory(t)
	agent := s.agent("one", 1, "")
	one, err := agent.Runner(s.ctx)
	s.must(err)
	_, job := s.shell("sleep 600", func(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(0))} })
	s.attempt(job, forge.AttemptRunning)
	_, err = s.client.SetRunner(s.ctx, one.ID, api.RunnerDisable)
	s.must(err)
	s.leaves(one.ID)
	s.must(s.fleet.AwaitNoLeftovers(s.ctx))
	if !agent.Alive() {
		t.Error("it does not wait to be enabled again")
	}
	_, err = s.client.SetRunner(s.ctx, one.ID, api.RunnerEnable)
	s.must(err)
	agent.Kill() // else it would look again minutes from now
	s.must(agent.Start())
	s.must(agent.AwaitOnline(s.ctx))

	_, err = s.client.SetRunner(s.ctx, one.ID, api.RunnerRevoke)
	s.must(err)
	s.leaves(one.ID)
	for _, again := range []bool{false, true} {
		if again {
			s.must(agent.Start())
		}
		code, err := agent.Exited(s.ctx)
		s.must(err)
		if code != int(core.ExitRevoked) {
			t.Errorf("started again: %v; exit code %d, want %d", again, code, core.ExitRevoked)
		}
	}
	s.triesInVain(agent.Folder)
}

// triesInVain connects a thousand times with the certificate of a state folder.
func (s *story) triesInVain(state string) {
	s.t.Helper()
	const tries, warmUp = 1000, 50
	folder, err := trust.OpenFolder(runner.TrustDir(state))
	s.must(err)
	identity, err := folder.Load()
	s.must(err)
	settings := trust.AgentTLS(trust.Client{Roots: identity.Roots(), Certificates: trust.NewSource(identity.TLS())})
	dialer := quic.NewDialer(settings, quic.Options{})
	defer func() { s.must(dialer.Close()) }()
	var before map[string]float64
	for i := range tries {
		if i == warmUp {
			before = s.figures()
		}
		conn, err := dialer.Dial(s.ctx, s.fleet.Daemon.Endpoint())
		if err != nil {
			s.must(s.ctx.Err())
			continue
		}
		// The daemon may refuse after its side of the handshake: then nobody answers the hello.
		l, err := link.Connect(s.ctx, conn, link.Config{Role: protocol.RoleAgent, Software: "revoked"}, forge.AgentSessionID{})
		if err == nil {
			l.Close(forge.CloseNormal)
			s.t.Fatalf("try %d was let in", i+1)
		}
		s.must(s.ctx.Err())
	}
	const goroutines, bytes = 20, 32 << 20
	s.must(fleet.Await(s.ctx, "the daemon to hold no more than before", func() (bool, error) {
		after := s.figures()
		for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
			if before[name] == 0 {
				return false, fmt.Errorf("the daemon does not tell its %s", name)
			}
		}
		return after["go_goroutines"] <= before["go_goroutines"]+goroutines &&
			after["process_resident_memory_bytes"] <= before["process_resident_memory_bytes"]+bytes, nil
	}))
}
