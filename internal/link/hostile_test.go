package link_test

import (
	"testing"
	"testing/synctest"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/link/linktest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/transport"
)

// daemon answers one connection and reads whatever comes, as far as the attack needs it.
func daemon(t testing.TB, conn transport.Conn, seen *witness, state forge.ConnectionState) {
	l, err := link.Answer(t.Context(), conn, link.Config{Observer: seen})
	if err != nil {
		return // it is the attack's to say whether that was right
	}
	defer l.Close(forge.CloseNormal)
	l.SetState(state)
	for err == nil {
		_, err = l.Receive(t.Context())
	}
}

// attack carries one attack out and returns what the daemon saw.
func attack(t testing.TB, a linktest.Attack, agent, conn transport.Conn) *witness {
	seen, done := new(witness), make(chan struct{})
	go func() { daemon(t, conn, seen, a.State); close(done) }()
	h := linktest.New(agent)
	if a.State != forge.ConnNegotiating {
		if err := h.Hello(t.Context()); err != nil {
			t.Fatalf("%s: %v", a.Name, err)
		}
	}
	if err := a.Run(t.Context(), h); err != nil {
		t.Error(err)
	}
	agent.Close(protocol.CloseCodeOf(forge.CloseNormal))
	<-done
	return seen
}

func TestWhateverAPeerDoesIsAViolationWithItsCode(t *testing.T) {
	for _, a := range linktest.Attacks() {
		t.Run(a.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				agent, conn := ends(protocol.ALPNAgent)
				faults := attack(t, a, agent, conn).faults()
				if len(faults) == 0 {
					t.Fatal("the observer saw nothing")
				}
				for _, f := range faults {
					if f != a.Fault {
						t.Errorf("the observer saw %v, want %v", f, a.Fault)
					}
				}
			})
		})
	}
}

// Whatever hostile peers announce, they cost no more than what they send.
func TestHostilePeersCostNoMemory(t *testing.T) {
	round := func(t *testing.T) {
		for _, a := range linktest.Attacks() {
			agent, conn := ends(protocol.ALPNAgent)
			attack(t, a, agent, conn)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		round(t)
		before := heap()
		for range 10 {
			round(t)
		}
		if after := heap(); after > before+4<<20 {
			t.Errorf("the heap grew from %d to %d KiB", before>>10, after>>10)
		}
	})
}
