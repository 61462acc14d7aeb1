package enroll_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/forgeyard/forgeyard/internal/enroll"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/agentv1"
	"github.com/forgeyard/forgeyard/internal/transport"
	"github.com/forgeyard/forgeyard/internal/transport/inmem"
	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

// askServer enrols with a daemon that answers as it likes, and then closes as if nothing was wrong.
func askServer(
	t *testing.T, answer func(*link.Link, link.Message) error, token trust.Token, key trust.Key,
) (*trust.Identity, error) {
	t.Helper()
	here, there := inmem.Pair(inmem.Limits{}, transport.Peer{ALPN: protocol.ALPNEnroll}, transport.Peer{ALPN: protocol.ALPNEnroll})
	var served sync.WaitGroup
	defer served.Wait()
	served.Go(func() {
		l, err := link.Answer(context.Background(), there, link.Config{})
		if err != nil {
			t.Error(err)
			return
		}
		defer l.Finish(forge.CloseNormal)
		m, err := l.Receive(context.Background())
		if err == nil {
			err = answer(l, m)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return enroll.Enroll(t.Context(), here, link.Config{}, token, key, "")
}

// closing waits for the end of a connection and returns why.
func closing(t *testing.T, conn transport.Conn) forge.CloseReason {
	t.Helper()
	<-conn.Context().Done()
	closed, ok := context.Cause(conn.Context()).(*transport.CloseError)
	if !ok || !closed.Remote {
		t.Fatalf("%v", context.Cause(conn.Context()))
	}
	return closed.Reason
}

func TestOneNetworkCannotTakeTheBudgetOfOthers(t *testing.T) {
	y := newYard(t, func(_ *enroll.DeskConfig, c *enroll.CounterConfig) {
		c.PerSecond, c.Burst, c.PrefixRate, c.PrefixBurst = 0.001, 3, 0.001, 2
	})
	try := func(addr string) forge.CloseReason {
		conn, served := y.dial(addr)
		defer served()
		_, err := enroll.Enroll(t.Context(), conn, link.Config{}, y.mint(), trusttest.NewKey(t), "")
		if err == nil {
			return forge.CloseNormal
		}
		return closing(t, conn)
	}
	for i, step := range []struct {
		addr string
		want forge.CloseReason
	}{
		{"192.0.2.1:1", forge.CloseNormal},
		{"192.0.2.9:2", forge.CloseNormal},
		{"192.0.2.200:3", forge.CloseRate},   // the same /24
		{"192.0.3.1:1", forge.CloseNormal},   // another one: nothing of all's budget was wasted
		{"[2001:db8::1]:1", forge.CloseRate}, // that of all is used up
		{"[2001:db8::2]:1", forge.CloseRate},
	} {
		if got := try(step.addr); got != step.want {
			t.Errorf("step %d, from %s: %v, want %v", i, step.addr, got, step.want)
		}
	}
}

func TestOnlySoManyAreServedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, func(_ *enroll.DeskConfig, c *enroll.CounterConfig) { c.Connections = 2 })
		var waits []func()
		for _, addr := range []string{home, "192.0.3.7:4000"} {
			_, served := y.dial(addr) // and says nothing
			waits = append(waits, served)
		}
		synctest.Wait()
		third, served := y.dial("192.0.4.7:4000")
		served()
		if got := closing(t, third); got != forge.CloseOverloaded {
			t.Errorf("the third: %v", got)
		}
		for _, wait := range waits {
			wait()
		}
		if _, err := y.enrol(y.mint(), trusttest.NewKey(t)); err != nil {
			t.Errorf("when the others are gone: %v", err)
		}
	})
}

// Connections that say nothing hold their places for a while: those of one network leave some to the others.
func TestOneNetworkCannotTakeAllPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, func(_ *enroll.DeskConfig, c *enroll.CounterConfig) { c.Connections = 4 })
		var waits []func()
		for range 2 {
			_, served := y.dial(home)
			waits = append(waits, served)
		}
		synctest.Wait()
		third, served := y.dial("192.0.2.8:4000")
		served()
		if got := closing(t, third); got != forge.CloseOverloaded {
			t.Errorf("the third of the network: %v", got)
		}
		other, served := y.dial("192.0.3.7:4000")
		if _, err := enroll.Enroll(t.Context(), other, link.Config{}, y.mint(), trusttest.NewKey(t), ""); err != nil {
			t.Errorf("from another network: %v", err)
		}
		served()
		for _, wait := range waits {
			wait()
		}
	})
}

// TestWhoSaysNothingIsSentAway also holds that nothing of it stays.
func TestWhoSaysNothingIsSentAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t, nil)
		silent, served := y.dial(home)
		start := time.Now()
		served()
		if closing(t, silent); time.Since(start) > 2*protocol.RegisterWithin {
			t.Errorf("after %v", time.Since(start))
		}
		greeting, served := y.dial(home)
		l, err := link.Connect(t.Context(), greeting, link.Config{Role: protocol.RoleAgent}, forge.AgentSessionID{})
		if err != nil {
			t.Fatal(err)
		}
		start = time.Now()
		served()
		if got := closing(t, greeting); got != forge.CloseRegisterTimeout || time.Since(start) > 2*protocol.RegisterWithin {
			t.Errorf("%v after %v", got, time.Since(start))
		}
		l.Close(forge.CloseNormal)
	})
}

func TestNothingButEnrolTravelsOnThisRoad(t *testing.T) {
	y := newYard(t, nil)
	id := y.member()
	renewal, err := enroll.NewRenewal(id, session)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]protocol.Message{
		"a renewal":   renewal,
		"an answer":   &agentv1.EnrollAcceptedV1{Runner: id.Runner().ULID, Certificate: agentv1.CertificateV1{Chain: [][]byte{{1}}, Roots: [][]byte{{1}}}},
		"a complaint": protocol.Unsupported(),
	} {
		conn, served := y.dial(home)
		l, err := link.Connect(t.Context(), conn, link.Config{Role: protocol.RoleAgent}, forge.AgentSessionID{})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.SendWire(t.Context(), forge.MakeID[forge.MessageID](forge.ULID{1}), forge.MessageID{}, m); err != nil {
			t.Fatal(err)
		}
		served()
		if got := closing(t, conn); got != forge.CloseRoleViolation && got != forge.CloseBadState {
			t.Errorf("%s: %v", name, got)
		}
		l.Close(forge.CloseNormal)
	}
	y.expect()
}

func TestAConnectionOfAgentsIsNotServedHere(t *testing.T) {
	y := newYard(t, nil)
	here, there := inmem.Pair(inmem.Limits{}, transport.Peer{ALPN: protocol.ALPNAgent}, transport.Peer{ALPN: protocol.ALPNAgent})
	y.counter.Serve(t.Context(), there)
	if got := closing(t, here); got != forge.CloseProtocol {
		t.Error(got)
	}
}
