package link_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/logv1"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// The last message of a connection arrives, and its code after it.
func TestFinishLetsThePeerReadTheLastMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		begun := time.Now()
		if err := sendBeside(t, l.daemon, &forge.RegistrationRejected{Reason: forge.CloseRunnerDisabled}); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() { l.daemon.Finish(forge.CloseRunnerDisabled); close(done) }()
		synctest.Wait() // nothing is thrown away while the agent has not come to it
		if m, err := l.agent.Receive(t.Context()); err != nil {
			t.Fatal(err)
		} else if _, ok := m.Domain.(*forge.RegistrationRejected); !ok {
			t.Fatalf("the agent got %+v", m)
		}
		_, err := l.agent.Receive(t.Context())
		if got := closeOf(t, err); got.Reason != forge.CloseRunnerDisabled || !got.Remote {
			t.Errorf("then %v", err)
		}
		<-done
		if time.Since(begun) != 0 {
			t.Errorf("it took %v", time.Since(begun))
		}
	})
}

func TestFinishDoesNotWaitForAPeerThatReadsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		for range 3 {
			if err := sendBeside(t, l.daemon, &forge.GoAway{}); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		l.daemon.Finish(forge.CloseShutdown)
		if time.Since(begun) != time.Second {
			t.Errorf("it took %v", time.Since(begun))
		}
	})
}

// A daemon stops while its agents send: they hear that it stops, and not that they were out of turn.
func TestWhatComesWhileThisEndClosesIsNoViolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		defer l.close()
		l.active(t)
		l.daemon.SetState(forge.ConnClosing)
		beat := &forge.Heartbeat{Runner: runner, Session: session, Nonce: 1, State: forge.AgentOnline}
		if err := l.agent.Send(t.Context(), frame(beat)); err != nil {
			t.Fatal(err)
		}
		head := &logv1.StreamHeaderV1{Attempt: attempt.ULID, Lease: lease.ULID, First: 1, Encoding: logv1.EncodingPlain}
		s, err := l.agent.OpenSend(t.Context(), protocol.StreamLog, head)
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		var reset *transport.ResetError
		if _, err := s.Write([]byte("x")); !errors.As(err, &reset) || reset.Code != protocol.ResetResumeLater {
			t.Errorf("the stream ends with %v", err)
		}
		go l.daemon.Finish(forge.CloseShutdown)
		_, err = l.agent.Receive(t.Context())
		if got := closeOf(t, err); got.Reason != forge.CloseShutdown || !got.Remote {
			t.Errorf("the agent hears %v", err)
		}
		if faults := l.seen.faults(); len(faults) > 0 {
			t.Errorf("the daemon saw %v", faults)
		}
	})
}

func TestAPeerThatJustLeavesIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := linkUp(t)
		l.close()
		_, err := l.daemon.Receive(t.Context())
		if closeOf(t, err).Reason != forge.CloseNormal {
			t.Errorf("%v", err)
		}
		if err := sendBeside(t, l.daemon, &forge.GoAway{}); closeOf(t, err).Reason != forge.CloseNormal {
			t.Errorf("%v", err)
		}
	})
}

func TestAHelloThatIsGivenUpLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, side := range []func(context.Context, transport.Conn) error{
			func(ctx context.Context, c transport.Conn) error {
				_, err := link.Connect(ctx, c, link.Config{Role: protocol.RoleAgent}, session)
				return err
			},
			func(ctx context.Context, c transport.Conn) error {
				_, err := link.Answer(ctx, c, link.Config{})
				return err
			},
		} {
			a, _ := ends(protocol.ALPNAgent)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			err := side(ctx, a)
			cancel()
			if closeOf(t, err); !errors.Is(err, context.DeadlineExceeded) || a.Context().Err() == nil {
				t.Errorf("%v", err)
			}
			a, _ = ends(protocol.ALPNAgent)
			begun := time.Now()
			if err := side(t.Context(), a); closeOf(t, err).Reason != forge.CloseRegisterTimeout || time.Since(begun) != 10*time.Second {
				t.Errorf("after %v: %v", time.Since(begun), err)
			}
		}
	})
}

// heap is what is alive after a collection.
func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
