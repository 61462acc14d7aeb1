package agent

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

// daemonAt serves with a clock of its own and speaks what terms say, until the test ends.
func daemonAt(t *testing.T, now time.Time, terms protocol.Terms) (endpoint string, id *trust.Identity) {
	t.Helper()
	w := trusttest.NewWorld(t, trusttest.Name, now)
	server := trust.Server{
		Roots: w.CA.Roots(), Certificates: trust.NewSource(w.Daemon()), Standing: func(forge.RunnerID, trust.Serial) error { return nil },
		Now: func() time.Time { return now },
	}
	listener, err := quic.Listen("127.0.0.1:0", trust.ServerTLS(server), quic.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	served.Go(func() {
		for {
			conn, err := listener.Accept(t.Context())
			if err != nil {
				return
			}
			l, err := link.Answer(t.Context(), conn, link.Config{Terms: terms, Software: "a daemon"})
			if err == nil {
				<-l.Context().Done()
				l.Close(forge.CloseNormal)
			}
		}
	})
	t.Cleanup(func() {
		if err := listener.Close(); err != nil {
			t.Error(err)
		}
		served.Wait()
	})
	return listener.Addr().String(), w.Runner(ident.New[forge.RunnerID]())
}

// What the doctor of an agent says of a daemon is true of the agent, too: that it could talk to it.
func TestADaemonIsReachedIfTheAgentCouldTalkToIt(t *testing.T) {
	other := protocol.OwnTerms()
	other.Versions = protocol.Ranges{{Major: 9, MinMinor: 2, MaxMinor: 3}}
	for name, c := range map[string]struct {
		ahead time.Duration
		terms protocol.Terms
		want  []string // nothing: it is reached
	}{
		"one like this":                         {0, protocol.OwnTerms(), nil},
		"another version (B43)":                 {0, other, []string{"no version of the protocol in common", "server supports 9", "Install the same release on both machines."}},
		"a clock that is 25 minutes ahead":      {25 * time.Minute, protocol.OwnTerms(), []string{"This clock is behind the peer's by about 25 min"}},
		"a clock that is four minutes too slow": {-4 * time.Minute, protocol.OwnTerms(), nil},
	} {
		t.Run(name, func(t *testing.T) {
			endpoint, id := daemonAt(t, time.Now().Add(c.ahead), c.terms)
			_, err := Reach(t.Context(), Options{Version: "1"}, id, endpoint)
			if len(c.want) == 0 {
				if err != nil {
					t.Error(err)
				}
				return
			}
			unreached, ok := errors.AsType[*UnreachedError](err)
			if !ok {
				t.Fatalf("%v", err)
			}
			for _, part := range c.want {
				if said := unreached.Error() + " " + unreached.Mend(); !strings.Contains(said, part) {
					t.Errorf("%q is not in %q", part, said)
				}
			}
		})
	}
}
