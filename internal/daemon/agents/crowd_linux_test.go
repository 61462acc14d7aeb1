package agents_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/trust"
)

// member is one of a crowd: a process with one socket for all its connections, as an agent has.
type member struct {
	*process
	dialer *quic.Dialer
}

func (w *world) member() *member {
	w.t.Helper()
	p := w.process(w.runner(1))
	identity := trust.NewSource(w.trust.Runner(p.runner).TLS())
	d := quic.NewDialer(trust.AgentTLS(trust.Client{Roots: w.trust.CA.Roots(), Certificates: identity}), quic.Options{})
	w.t.Cleanup(func() { _ = d.Close() })
	return &member{process: p, dialer: d}
}

// join brings the member into step with the present daemon.
func (m *member) join() {
	m.w.t.Helper()
	conn, err := m.dialer.Dial(m.w.ctx, m.w.endpoint)
	m.w.must(err)
	m.link, err = link.Connect(m.w.ctx, conn, link.Config{Role: protocol.RoleAgent, Software: "test agent"}, m.session)
	m.w.must(err)
	m.link.Bind(m.runner, m.session)
	m.conn = conn
	m.register()
	hear[*forge.RegistrationAccepted](m.process)
	m.resync()
}

// footprint is what this process, with daemon and crowd in it, holds of the system.
type footprint struct{ files, goroutines int }

func measure(t *testing.T) footprint {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return footprint{files: len(open), goroutines: runtime.NumGoroutine()}
}

// Case B33: a crowd that comes back after each restart of the daemon leaves nothing open and nobody out.
func TestACrowdComesBackAfterFiveRestartsAndLeavesNothingOpen(t *testing.T) {
	const size, restarts, slack = 50, 5, 12 // slack is less than any leak by connection, whichever of the five it comes from
	w := newWorld(t)
	w.overUDP = true
	w.begin()
	crowd := make([]*member, size)
	processes := make([]*process, size)
	for i := range crowd {
		crowd[i] = w.member()
		processes[i] = crowd[i].process
		crowd[i].join()
	}
	first := measure(t)
	for range restarts {
		w.restart(processes...)
		for _, m := range crowd {
			if m.goAway == nil || m.goAway.Spread == 0 {
				t.Fatalf("the farewell is %+v: all would come back at once", m.goAway)
			}
			m.goAway = nil
			m.join()
		}
	}
	if n := len(w.server.Sessions()); n != size {
		t.Errorf("%d of %d are back", n, size)
	}
	late := time.After(patience)
	for {
		last := measure(t)
		if last.files <= first.files+slack && last.goroutines <= first.goroutines+slack {
			return
		}
		select {
		case <-time.After(20 * time.Millisecond): // what has ended may still be on its way out
		case <-late:
			t.Fatalf("%+v after the first start, %+v after %d more", first, last, restarts)
		}
	}
}
