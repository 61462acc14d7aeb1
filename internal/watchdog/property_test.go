package watchdog_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/watchdog"
)

// holder is whoever keeps a dog: it wakes when asked to, never late, and knows whether its workload lives.
type holder struct {
	t        *rapid.T
	now      forge.Instant
	dog      watchdog.Dog
	softened bool
	killedAt forge.Instant
	latest   forge.Instant // deadline seen
}

// wait lets time pass, with a step at each moment that the dog asked for.
func (h *holder) wait(d time.Duration) {
	until := h.now.Add(d)
	for wakes := 0; h.dog.Wake() <= until; wakes++ {
		if wakes > 2 {
			h.t.Fatalf("asks to be woken at %v for ever", h.dog.Wake())
		}
		h.now = max(h.now, h.dog.Wake())
		h.step()
	}
	h.now = until
}

func (h *holder) step() {
	switch h.dog.Step(h.now) {
	case watchdog.Soft:
		if h.softened {
			h.t.Fatal("two soft signals")
		}
		h.softened = true
	case watchdog.Hard:
		if h.killedAt != 0 {
			h.t.Fatal("two kills")
		}
		h.killedAt = h.now
	}
}

func (h *holder) check() {
	if h.dog.Deadline() < h.latest {
		h.t.Fatalf("the deadline moved back from %v to %v", h.latest, h.dog.Deadline())
	}
	h.latest = h.dog.Deadline()
	if h.killedAt == 0 && h.now >= h.dog.Deadline() {
		h.t.Fatalf("alive at %v, past the deadline %v", h.now, h.dog.Deadline())
	}
	if h.killedAt >= h.dog.Deadline() {
		h.t.Fatalf("killed at %v, not before the deadline %v", h.killedAt, h.dog.Deadline())
	}
	if h.softened && !h.dog.Bitten() || h.killedAt != 0 && !h.dog.Bitten() {
		h.t.Fatal("signalled and not bitten")
	}
	if h.dog.MayStart(h.now) && (h.dog.Bitten() || h.now >= h.dog.Deadline()) {
		h.t.Fatal("a workload may start that is to be killed")
	}
}

func TestNothingIsAliveAtTheDeadlineWhateverHappens(t *testing.T) {
	kills := 0
	rapid.Check(t, func(t *rapid.T) {
		p := policy
		p.SoftGrace = time.Duration(rapid.Int64Range(1, int64(10*time.Second)).Draw(t, "grace"))
		p.KillLead = p.SoftGrace + time.Duration(rapid.Int64Range(1, int64(5*time.Second)).Draw(t, "lead beyond grace"))
		const start = forge.Instant(time.Hour)
		first := start.Add(p.KillLead + time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(t, "deadline")))
		h := &holder{t: t, now: start, dog: watchdog.New(p, first)}
		pause := rapid.Int64Range(0, int64(20*time.Second))
		t.Repeat(map[string]func(*rapid.T){
			"":     func(*rapid.T) { h.check() },
			"wait": func(t *rapid.T) { h.wait(time.Duration(pause.Draw(t, "pause"))) },
			"renew": func(t *rapid.T) {
				h.dog.Move(h.now.Add(time.Duration(rapid.Int64Range(-int64(time.Minute), int64(2*time.Minute)).Draw(t, "deadline from now"))))
			},
			"step early": func(*rapid.T) { h.step() },
			"bite": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "bite") == 0 {
					h.dog.Bite(h.now)
				}
			},
		})
		if h.killedAt != 0 {
			kills++
		}
	})
	if kills == 0 {
		t.Error("no sequence came to a kill")
	}
}
