package authority

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// history is a small world in which anything may happen in any order: two runners with processes that come, go and
// stay, three jobs and others after them, and a network that brings every message again whenever it likes.
type history struct {
	*world
	voices   []*agent // every process on every connection that it ever had
	jobs     []forge.JobID
	contexts []forge.AttemptContext
	results  []*forge.Completion
	said     []Command
	seen     map[string]int
}

// pick draws one of a list, each as likely as any other: rapid's own choice prefers the first ones.
func pick[T any](t *rapid.T, name string, list []T) T {
	return list[evenly.Draw(t, name)*len(list)/128]
}

var evenly = rapid.Custom(func(t *rapid.T) int {
	n := 0
	for range 7 {
		n *= 2
		if rapid.Bool().Draw(t, "bit") {
			n++
		}
	}
	return n
})

// mostly is true five times in six.
func mostly(t *rapid.T, name string) bool { return evenly.Draw(t, name) < 107 }

func newHistory(t *rapid.T, seen map[string]int) *history {
	h := &history{world: newWorld(t), seen: seen}
	for range 2 {
		h.voices = append(h.voices, h.runner(rapid.IntRange(1, 2).Draw(t, "slots")))
	}
	for range 3 {
		h.submit(t)
	}
	return h
}

// submit makes another job.
func (h *history) submit(t *rapid.T) {
	h.jobs = append(h.jobs, h.job(forge.RetryPolicy{
		Infra: pick(t, "infra", []uint8{0, 1, 10}), Max: 3, On: []forge.RetryWord{forge.RetryExit},
	}))
}

// say runs a command and keeps it for the network to repeat.
func (h *history) say(cmd Command) Answer {
	h.said = append(h.said, cmd)
	return h.hear(h.run(cmd))
}

// hear notes what was answered, so that the test can tell whether it tests anything.
func (h *history) hear(answer Answer) Answer {
	h.note("closed", answer.Close != 0)
	h.note("refused", answer.Refused != 0)
	h.note("accepted", answer.Completion == forge.CompletionAccepted)
	h.note("duplicate", answer.Completion == forge.CompletionDuplicate)
	h.note("stale", answer.Completion == forge.CompletionStale)
	h.note("not yet", answer.NotYet != 0)
	h.note("recovered", answer.Done && answer.Recovery == forge.RecoveryEnded)
	return answer
}

func (h *history) note(state string, reached bool) {
	if reached {
		h.seen[state]++
	}
}

func (h *history) voice(t *rapid.T) *agent { return pick(t, "voice", h.voices) }

// current is a process that has not been superseded, on its newest connection.
func (h *history) current(t *rapid.T) *agent {
	var current []*agent
	for _, a := range h.voices {
		if s := h.rows.Sessions[a.runner]; s.Session == a.session && s.TransportSeq == a.seq {
			current = append(current, a)
		}
	}
	return pick(t, "current voice", current)
}

// context is that of a lease that was offered at some time, mostly one that is open and whose session is current.
func (h *history) context(t *rapid.T) forge.AttemptContext {
	open := slices.DeleteFunc(h.open(forge.RunnerID{}), func(l Lease) bool {
		return h.rows.Sessions[l.Context.Runner].Session != l.Context.Session
	})
	if len(open) > 0 && mostly(t, "open") {
		return pick(t, "lease", open).Context
	}
	if len(h.contexts) == 0 {
		return forge.AttemptContext{}
	}
	return pick(t, "context", h.contexts)
}

// holder is mostly whoever holds a lease, and now and then anybody.
func (h *history) holder(t *rapid.T, c forge.AttemptContext) *agent {
	for _, a := range slices.Backward(h.voices) {
		if a.session == c.Session && mostly(t, "its holder") {
			return a
		}
	}
	return h.voice(t)
}

func (h *history) actions() map[string]func(*rapid.T) {
	all := map[string]func(*rapid.T){}
	maps.Copy(all, h.processes())
	maps.Copy(all, h.messages())
	maps.Copy(all, h.endings())
	return all
}

// processes come, go and come back, though not all the time.
func (h *history) processes() map[string]func(*rapid.T) {
	arrive := func(t *rapid.T, a *agent) {
		if mostly(t, "arrives") {
			return
		}
		a.seq++
		h.say(a.register())
		h.voices = append(h.voices, a)
	}
	return map[string]func(*rapid.T){
		"reconnect":       func(t *rapid.T) { a := *h.voice(t); arrive(t, &a) },
		"restart":         func(t *rapid.T) { arrive(t, h.current(t).restarted()) },
		"copy":            func(t *rapid.T) { arrive(t, h.current(t).elsewhere()) },
		"daemon restarts": func(*rapid.T) { h.restartDaemon() },
		"set runner": func(t *rapid.T) {
			h.say(&SetRunner{Runner: h.voice(t).runner, Disabled: !mostly(t, "disabled")})
		},
	}
}

// messages are what an agent says while it holds leases.
func (h *history) messages() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"offer": func(t *rapid.T) {
			job := pick(t, "job", h.jobs)
			if answer := h.say(h.current(t).offered(job)); answer.Done {
				h.contexts = append(h.contexts, answer.Context)
			}
			if h.rows.Jobs[job].State.Ended() {
				h.submit(t)
			}
		},
		"claim": func(t *rapid.T) {
			c := h.context(t)
			phase := forge.AttemptState(rapid.IntRange(1, 6).Draw(t, "phase"))
			h.say(&Claim{Fence: h.holder(t, c).fence(), Context: c, Phase: phase, EventSeq: uint64(phase), Watched: h.watch.Lease(h.now, c.Lease)})
		},
		"accept": func(t *rapid.T) {
			c := h.context(t)
			h.say(&Claim{Fence: h.holder(t, c).fence(), Context: c, Phase: forge.AttemptOffered, Watched: h.watch.Lease(h.now, c.Lease)})
		},
		"beat": func(t *rapid.T) {
			c := h.context(t)
			h.say(&Heartbeat{Fence: h.holder(t, c).fence(), Leases: []forge.LeaseID{c.Lease}, Watched: []Watched{h.watch.Lease(h.now, c.Lease)}})
		},
		"phase": func(t *rapid.T) {
			c := h.context(t)
			h.say(&Phase{
				Fence: h.holder(t, c).fence(), Context: c, Seq: uint64(rapid.IntRange(1, 9).Draw(t, "seq")),
				Phase: forge.AttemptState(rapid.IntRange(1, 11).Draw(t, "phase")),
			})
		},
		"log": func(t *rapid.T) {
			c := h.context(t)
			h.say(&AppendLog{Runner: h.holder(t, c).runner, Attempt: c.Attempt, First: 1, Count: 3, Bytes: 3, Hash: logHash(c, 3)})
		},
		"seal": func(t *rapid.T) {
			c := h.context(t)
			h.say(&SealLog{Fence: h.holder(t, c).fence(), Context: c, Seal: sealOf(c, 3)})
		},
		"again": func(t *rapid.T) {
			if len(h.said) > 0 {
				h.hear(h.run(pick(t, "message", h.said)))
			}
		},
	}
}

// endings are what may end a lease.
func (h *history) endings() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"complete": func(t *rapid.T) {
			c := h.context(t)
			if a := h.holder(t, c); rapid.Bool().Draw(t, "log is complete") {
				h.say(&AppendLog{Runner: a.runner, Attempt: c.Attempt, First: 1, Count: 3, Bytes: 3, Hash: logHash(c, 3)})
				h.say(&SealLog{Fence: a.fence(), Context: c, Seal: sealOf(c, 3)})
			}
			m := h.completion(c, pick(t, "result", []forge.Result{good, bad, {Class: forge.Lost}, {Class: forge.InputFetch}}))
			m.CancelSeen = h.rows.Jobs[c.Job].CancelRequested && rapid.Bool().Draw(t, "cancel seen")
			m.Hash = m.ResultHash()
			h.results = append(h.results, m)
			h.say(&Complete{Fence: h.holder(t, c).fence(), Completion: m})
		},
		"complete again": func(t *rapid.T) {
			if len(h.results) > 0 {
				m := pick(t, "result", h.results)
				h.say(&Complete{Fence: h.holder(t, m.Context).fence(), Completion: m})
			}
		},
		"reject": func(t *rapid.T) { c := h.context(t); h.say(&Reject{Fence: h.holder(t, c).fence(), Context: c}) },
		"absent": func(t *rapid.T) { c := h.context(t); h.say(&Absent{Fence: h.holder(t, c).fence(), Context: c}) },
		"recover": func(t *rapid.T) {
			item := forge.RecoveredAttempt{Context: h.context(t), Killed: rapid.Bool().Draw(t, "killed")}
			next := h.holder(t, item.Context)
			if rapid.Bool().Draw(t, "dies first") {
				next = next.restarted()
				next.seq++
				h.say(next.register())
				h.voices = append(h.voices, next)
			}
			h.say(&Recover{Fence: next.fence(), Item: item})
		},
		"cancel": func(t *rapid.T) {
			if !mostly(t, "cancel") {
				h.say(&CancelJob{Job: pick(t, "job", h.jobs)})
			}
		},
		"revoke": func(t *rapid.T) { h.say(&Revoke{Context: h.context(t)}) },
		"time passes": func(t *rapid.T) {
			h.watchFor(pick(t, "pause", []time.Duration{time.Second, policy.OfferTTL, policy.Watch(hardTTL)}))
			h.note("expired", h.sweep() > 0)
		},
	}
}

// takenOnce: of all the results that were ever sent for an attempt, at most one stands, and it stays.
func (h *history) takenOnce() {
	for _, m := range h.results {
		at := h.rows.Attempts[m.Context.Attempt]
		if at.Completion == m.Message && at.Outcome != m.Outcome() {
			h.t.Fatalf("a result of %v is kept as %v", m.Outcome(), at.Outcome)
		}
	}
	for job, row := range h.rows.Jobs {
		ended, succeeded := uint32(0), 0
		for _, at := range h.rows.Attempts {
			if at.Job == job && at.State.Ended() {
				ended++
			}
			if at.Job == job && at.State == forge.AttemptSucceeded {
				succeeded++
			}
		}
		if succeeded > 1 || succeeded == 1 && row.State != forge.JobSucceeded {
			h.t.Fatalf("%d attempts of a job succeeded, the job is %v", succeeded, row.State)
		}
		if again := row.FreeRetries + row.InfraRetries + row.UserRetries; again > ended {
			h.t.Fatalf("%d ends were charged %d times", ended, again)
		}
	}
}

func TestWhateverHappensInWhateverOrderAuthorityHolds(t *testing.T) {
	seen := map[string]int{}
	check := func(t *rapid.T) {
		h := newHistory(t, seen)
		actions := h.actions()
		names := slices.Sorted(maps.Keys(actions))
		names = append(names, "offer", "accept", "accept", "complete", "complete again") // or hardly anything gets far
		for range rapid.IntRange(150, 200).Draw(t, "length") {
			actions[pick(t, "what happens", names)](t)
			h.takenOnce()
		}
	}
	states := []string{"closed", "refused", "accepted", "duplicate", "stale", "not yet", "recovered", "expired"}
	missing := func(state string) bool { return seen[state] == 0 }
	for range 10 { // with -short there are few histories at a time
		if rapid.Check(t, check); !slices.ContainsFunc(states, missing) {
			break
		}
	}
	t.Logf("reached: %v", seen)
	for _, state := range slices.DeleteFunc(states, func(state string) bool { return !missing(state) }) {
		t.Errorf("no history came to %q", state)
	}
}
