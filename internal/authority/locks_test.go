package authority

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// draw makes commands and rows of few ids, so that they often meet, and of any states, so that they need not agree.
type draw struct{ *rapid.T }

// fresh is the id of a row that is not there.
var fresh = forge.ULID{15: 9}

func (d draw) number(name string, most int) uint64 {
	return uint64(evenly.Draw(d.T, name) * (most + 1) / 128)
}

func (d draw) flag(name string) bool { return rapid.Bool().Draw(d.T, name) }

// id is 1, or now and then 2.
func (d draw) id(name string) forge.ULID {
	return forge.ULID{15: byte(1 + d.number(name, 15)/15)}
}

func (d draw) context() forge.AttemptContext {
	return forge.AttemptContext{
		Job: forge.JobID{ULID: d.id("job")}, Attempt: forge.AttemptID{ULID: d.id("attempt")}, Lease: forge.LeaseID{ULID: d.id("lease")},
		Runner: forge.RunnerID{ULID: d.id("runner")}, Session: forge.AgentSessionID{ULID: d.id("session")},
	}
}

func (d draw) fence() Fence {
	return Fence{Runner: forge.RunnerID{ULID: d.id("runner")}, Session: forge.AgentSessionID{ULID: d.id("session")}, TransportSeq: 1}
}

func (d draw) result() forge.Result {
	return forge.Result{Class: rapid.SampledFrom(forge.Classes()).Draw(d.T, "class")}
}

// state is mostly the usual one, and otherwise any up to the last.
func (d draw) state(name string, usual, last uint8) uint8 {
	if d.flag("usual " + name) {
		return usual
	}
	return uint8(1 + d.number(name, int(last-1)))
}

// row fills one row of a working set, whatever the rules say of its kind.
func (d draw) row(r *Rows, key Key) {
	found := d.flag("found") || d.flag("found after all")
	runner := forge.RunnerID{ULID: key.ID}
	switch key.Table {
	case TableSession:
		r.Session = Row[Session]{Found: true, Value: Session{
			Runner: runner, Session: forge.AgentSessionID{ULID: d.id("session")}, TransportSeq: 1, StartCounter: d.number("start", 3),
		}}
		if d.flag("folder") { // else that of the leases
			r.Session.Value.StateFolder.ULID = d.id("folder")
		}
	case TableFolder:
		r.Folder = Row[Folder]{Found: found, Value: Folder{Runner: runner, StateFolder: forge.StateFolderID{ULID: key.Sub}, Highest: d.number("highest", 2)}}
	case TableBeat:
		r.Beat = Row[Beat]{Found: found, Value: Beat{Runner: runner}}
	case TableRunner:
		r.Runner = Row[Runner]{Found: found, Value: Runner{ID: runner, Slots: 1, Draining: d.number("draining", 7) == 7}}
	case TableOpenLeases:
		r.OpenLeases = int(d.number("open", 1))
	case TableJob:
		usual := rapid.SampledFrom([]forge.JobState{forge.JobActive, forge.JobReady}).Draw(d.T, "usual job")
		r.Job = Row[Job]{Found: found, Value: Job{
			ID: forge.JobID{ULID: key.ID}, State: forge.JobState(d.state("job", uint8(usual), uint8(forge.JobSkipped))), CancelRequested: d.flag("cancel"),
			Retry: &forge.RetryPolicy{Infra: uint8(d.number("infra", 1))},
		}}
	case TableLease:
		found = found && key.ID != fresh
		r.Lease = d.lease(key.ID, found)
		r.Attempt = Row[Attempt]{Found: found, Value: Attempt{
			ID: r.Lease.Value.Context.Attempt, State: forge.AttemptState(d.state("attempt", uint8(forge.AttemptAccepted), uint8(forge.AttemptRefused))),
		}}
	case TableHeld:
		r.Held = append(r.Held, HeldLease{Lease: d.lease(key.ID, found), Cancel: d.flag("cancel")})
	case TableLog:
		r.Log = Row[Log]{Found: found, Value: Log{Attempt: forge.AttemptID{ULID: key.ID}, Runner: forge.RunnerID{ULID: d.id("runner")}, Next: 1, Sealed: d.flag("sealed")}}
	case TableRefs:
	}
}

func (d draw) lease(id forge.ULID, found bool) Row[Lease] {
	if !found {
		return Row[Lease]{}
	}
	c := d.context()
	c.Lease.ULID = id
	usual := rapid.SampledFrom([]forge.LeaseState{forge.LeaseAccepted, forge.LeaseOffered}).Draw(d.T, "usual lease")
	return Row[Lease]{Found: true, Value: Lease{
		Context: c, State: forge.LeaseState(d.state("lease", uint8(usual), uint8(forge.LeaseLost))), Renewals: d.number("renewals", 1), MaxLifetime: time.Hour,
	}}
}

// rules makes a command of each kind.
var rules = []func(draw) Command{
	func(d draw) Command {
		return &Register{
			Runner: forge.RunnerID{ULID: d.id("runner")}, Session: forge.AgentSessionID{ULID: d.id("session")},
			StateFolder: forge.StateFolderID{ULID: d.id("folder")}, StartCounter: d.number("start", 3), TransportSeq: d.number("seq", 3),
		}
	},
	func(d draw) Command {
		return &Offer{
			Fence: d.fence(), Job: forge.JobID{ULID: d.id("job")},
			Attempt: forge.AttemptID{ULID: fresh}, Lease: forge.LeaseID{ULID: fresh},
		}
	},
	func(d draw) Command {
		return &Claim{Fence: d.fence(), Context: d.context(), Phase: forge.AttemptState(1 + d.number("phase", 10)), EventSeq: 1}
	},
	func(d draw) Command { return &Reject{Fence: d.fence(), Context: d.context()} },
	func(d draw) Command {
		return &Heartbeat{
			Fence: d.fence(), Leases: []forge.LeaseID{{ULID: forge.ULID{15: 1}}, {ULID: forge.ULID{15: 2}}}, Watched: make([]Watched, 2),
		}
	},
	func(d draw) Command { return &Touch{Fence: d.fence()} },
	func(d draw) Command { return &Absent{Fence: d.fence(), Context: d.context()} },
	func(d draw) Command {
		return &Phase{Fence: d.fence(), Context: d.context(), Seq: 1, Phase: forge.AttemptState(1 + d.number("phase", 10))}
	},
	func(d draw) Command {
		return &AppendLog{Runner: forge.RunnerID{ULID: d.id("runner")}, Attempt: d.context().Attempt, First: 1, Count: d.number("count", 2)}
	},
	func(d draw) Command { return &SealLog{Fence: d.fence(), Context: d.context()} },
	func(d draw) Command {
		c := d.context()
		return &CloseLog{Lease: c.Lease, Attempt: c.Attempt}
	},
	func(d draw) Command {
		return &Complete{Fence: d.fence(), Completion: &forge.Completion{
			Context: d.context(), Message: forge.MessageID{ULID: d.id("message")}, Result: d.result(), Capture: forge.Succeeded,
		}}
	},
	func(d draw) Command { return &CancelJob{Job: d.context().Job} },
	func(d draw) Command { return &Revoke{Context: d.context()} },
	func(d draw) Command {
		return &Expire{Context: d.context(), State: forge.LeaseState(d.state("lease", uint8(forge.LeaseAccepted), uint8(forge.LeaseLost))), Renewals: d.number("renewals", 1)}
	},
	func(d draw) Command {
		return &Recover{Fence: d.fence(), Item: forge.RecoveredAttempt{Context: d.context(), Killed: true}}
	},
	func(d draw) Command { return &SetRunner{Runner: d.context().Runner, Disabled: d.flag("disabled")} },
	func(d draw) Command { return &Plan{Job: d.context().Job} },
}

// applied applies a rule. Rows that cannot stand side by side make a rule panic: that transaction writes nothing.
func applied(cmd Command, rows *Rows) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			if text, mine := p.(string); !mine || !strings.HasPrefix(text, "authority: ") {
				panic(p)
			}
		}
	}()
	cmd.Apply(rows)
	return true
}

func TestEveryRuleWritesOnlyWhatItLockedAndLocksInTheOrderOfTheTables(t *testing.T) {
	wrote := make([]int, len(rules))
	kinds := make([]string, len(rules))
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		for n := range 16 * len(rules) {
			i := n % len(rules)
			cmd := rules[i](draw{t})
			kinds[i] = fmt.Sprintf("%T", cmd)
			var rows Rows
			keys := cmd.Keys(nil)
			for _, key := range keys {
				draw{t}.row(&rows, key)
			}
			loaded := rows
			loaded.Held = slices.Clone(rows.Held)
			if !applied(cmd, &rows) {
				continue
			}
			w.checkLocks(cmd, keys, &loaded, &rows)
			if rows.Session.Dirty || rows.Beat.Dirty || rows.Runner.Dirty || rows.Job.Dirty || rows.Attempt.Dirty ||
				rows.Lease.Dirty || rows.Log.Dirty {
				wrote[i]++
			}
		}
	})
	for i := range rules {
		if wrote[i] == 0 {
			t.Errorf("%s never wrote anything: its locks were not tested", kinds[i])
		}
		t.Logf("%s wrote %d times", kinds[i], wrote[i])
	}
}
