package link_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/link/linktest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
	"github.com/forgeyard/forgeyard/internal/transport/transporttest"
)

// road is where links are tried over and over.
type road struct {
	dial   func(ctx context.Context) (transport.Conn, error)
	accept func(ctx context.Context) (transport.Conn, error)
}

func roads(t *testing.T) map[string]road {
	n := inmem.New(inmem.Limits{})
	own := inmem.Identity{ALPN: []protocol.ALPN{protocol.ALPNAgent}}
	memory, err := n.Listen("daemon", own)
	if err != nil {
		t.Fatal(err)
	}
	ca := transporttest.NewCA()
	real, err := quic.Listen("127.0.0.1:0", ca.Server(protocol.ALPNAgent), quic.Options{
		Admission: quic.Admission{PerSecond: 1e6, Burst: 1e6, PrefixPerSecond: 1e6, PrefixBurst: 1e6},
	})
	if err != nil {
		t.Fatal(err)
	}
	dialer := quic.NewDialer(ca.Client(ca.Issue("runner", transporttest.Good()), protocol.ALPNAgent), quic.Options{})
	t.Cleanup(func() {
		_ = memory.Close() // it never fails
		if err := dialer.Close(); err != nil {
			t.Error(err)
		}
		if err := real.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return map[string]road{
		"inmem": {
			dial:   func(ctx context.Context) (transport.Conn, error) { return n.Dialer(own).Dial(ctx, "daemon") },
			accept: memory.Accept,
		},
		"quic": {
			dial: func(ctx context.Context) (transport.Conn, error) {
				return dialer.Dial(ctx, real.Addr().String())
			},
			accept: real.Accept,
		},
	}
}

// Case T14: nothing is left of connections that came and went, or never came to anything.
func TestAThousandConnectionsLeaveNothingBehind(t *testing.T) {
	for name, r := range roads(t) {
		t.Run(name, func(t *testing.T) {
			cycle := func(i int) { comeAndGo(t, r, i) }
			for i := range 20 {
				cycle(i)
			}
			goroutines := runtime.NumGoroutine()
			for i := range 1000 {
				cycle(i)
			}
			// What quic-go does after a close is over soon, but not at once.
			for i := 0; runtime.NumGoroutine() > goroutines+50; i++ {
				if i == 1_000_000 {
					t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), goroutines)
				}
				runtime.Gosched()
			}
		})
	}
}

// comeAndGo makes one connection and ends it in one of several ways.
func comeAndGo(t *testing.T, r road, way int) {
	conn, err := r.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other, err := r.accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(0)
	defer conn.Close(0)
	switch way % 4 {
	case 0: // no hello
		go conn.Close(0)
		if l, err := link.Answer(t.Context(), other, link.Config{}); err == nil {
			t.Error("a hello from nobody")
			l.Close(forge.CloseNormal)
		}
	case 1: // no answer
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if l, err := link.Connect(ctx, conn, link.Config{Role: protocol.RoleAgent}, session); err == nil {
			t.Error("an answer from nobody")
			l.Close(forge.CloseNormal)
		}
	case 2: // ended with a stream open
		l := agree(t, conn, other, link.Config{}, link.Config{})
		l.active(t)
		head := &agentv1.SecretHeaderV1{Attempt: attempt.ULID, Lease: lease.ULID}
		if _, err := l.agent.Open(t.Context(), protocol.StreamSecret, head); err != nil {
			t.Error(err)
		}
		if _, err := l.daemon.Accept(t.Context()); err != nil {
			t.Error(err)
		}
		l.close()
	case 3: // ended in order
		l := agree(t, conn, other, link.Config{}, link.Config{})
		l.daemon.Finish(forge.CloseGoAway)
		l.agent.Close(forge.CloseNormal)
	}
}

// Case T04: logs that nobody reads hold up nothing else, in either direction.
func TestControlGoesThroughBesideLogsThatNobodyReads(t *testing.T) {
	for name, r := range roads(t) {
		t.Run(name, func(t *testing.T) {
			conn, err := r.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			other, err := r.accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			l := agree(t, conn, other, link.Config{}, link.Config{})
			l.active(t)
			var writers sync.WaitGroup
			defer writers.Wait()
			defer l.close()
			for range 48 {
				s, err := l.agent.OpenSend(t.Context(), protocol.StreamLog, &logv1.StreamHeaderV1{
					Attempt: attempt.ULID, Lease: lease.ULID, First: 1, Encoding: logv1.EncodingPlain,
				})
				if err != nil {
					t.Fatal(err)
				}
				writers.Go(func() { _, _ = s.Write(make([]byte, 2<<20)) }) // it ends with the connection
				if _, err := l.daemon.Accept(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			for range 20 {
				if err := l.daemon.Send(ctx, frame(&forge.Cancel{Attempt: attempt, Lease: lease, Reason: forge.CancelUser})); err != nil {
					t.Fatal(err)
				}
				if _, err := l.agent.Receive(ctx); err != nil {
					t.Fatal(err)
				}
				beat := &forge.Heartbeat{Runner: runner, Session: session, Nonce: 1, State: forge.AgentOnline}
				if err := l.agent.Send(ctx, frame(beat)); err != nil {
					t.Fatal(err)
				}
				if _, err := l.daemon.Receive(ctx); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// The attacks over the real road, but for those that wait on a clock.
func TestAttacksOverQUIC(t *testing.T) {
	r := roads(t)["quic"]
	for _, a := range linktest.Attacks() {
		if a.Slow {
			continue
		}
		t.Run(a.Name, func(t *testing.T) {
			agent, err := r.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			conn, err := r.accept(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range attack(t, a, agent, conn).faults() {
				if f != a.Fault {
					t.Errorf("the observer saw %v, want %v", f, a.Fault)
				}
			}
		})
	}
}
