package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// dice draw evenly, which is what brings histories far: rapid draws their seed.
type dice struct{ *rand.Rand }

// between draws from low to high, both included.
func (d dice) between(low, high int) int { return low + d.IntN(high-low+1) }

func one[T any](d dice, list []T) T { return list[d.IntN(len(list))] }

// world is a small place in which random commands meet: few runners, processes and jobs, so that they get into each
// other's way, and ids that are mostly right.
type world struct {
	seed     uint64
	ids      uint64
	runners  []forge.RunnerID
	sessions []authority.Register // processes that may speak: two of each runner
	run      forge.RunID
	jobs     []forge.JobID
	leases   []forge.AttemptContext // every lease that was offered
	messages map[forge.LeaseID]forge.MessageID
	model    *Model // to look at, so that what a daemon has watched is mostly right
}

// newWorld makes up the ids. Worlds with different seeds share none, so that several can be in one store.
func newWorld(seed uint64) *world {
	w := &world{seed: seed, messages: map[forge.LeaseID]forge.MessageID{}}
	w.run = make1[forge.RunID](w)
	for range 2 {
		runner := make1[forge.RunnerID](w)
		w.runners = append(w.runners, runner)
		folder, boot := make1[forge.StateFolderID](w), make1[forge.BootID](w)
		for counter := range uint64(2) {
			w.sessions = append(w.sessions, authority.Register{
				Runner: runner, Session: make1[forge.AgentSessionID](w), StateFolder: folder, Boot: boot, StartCounter: counter + 1,
				TransportSeq: 1, Version: "1.2.3",
			})
		}
	}
	for range 6 {
		w.jobs = append(w.jobs, make1[forge.JobID](w))
	}
	return w
}

func make1[T ~struct{ forge.ULID }](w *world) T {
	w.ids++
	var u forge.ULID
	for i := range 8 {
		u[i] = byte(w.seed >> (56 - 8*i))
		u[8+i] = byte(w.ids >> (56 - 8*i))
	}
	return forge.MakeID[T](u)
}

// newRunner is a runner that holds up to two leases.
func (w *world) newRunner(i int) store.NewRunner {
	return store.NewRunner{
		ID: w.runners[i], Name: "r-" + lower(w.runners[i]), Pool: forge.DefaultPool, Trust: forge.TrustTrusted, Slots: 2,
	}
}

// newRun has one job without retries, one with retries for its infrastructure, and one with the user's own.
func (w *world) newRun() store.NewRun {
	n := store.NewRun{ID: w.run, Project: "default", Trust: forge.TrustTrusted, Actor: "somebody"}
	for i, id := range w.jobs {
		spec := []byte{byte(i), 's', 'p', 'e', 'c'}
		retry := forge.RetryPolicy{}
		switch i % 3 {
		case 1:
			retry.Infra = 2
		case 2:
			retry.Max, retry.On = 1, []forge.RetryWord{forge.RetryExit}
		}
		n.Jobs = append(n.Jobs, store.NewJob{
			ID: id, Key: forge.JobKey("job" + string(rune('a'+i))), Draft: forge.SpecID(spec), Bytes: spec,
			Terms: store.Terms{HardTTL: 2 * time.Minute, MaxLifetime: time.Hour, Retry: retry},
		})
	}
	return n
}

// draw makes a command.
func (w *world) draw(d dice) authority.Command {
	kinds := []func(dice) authority.Command{
		w.register, w.offer, w.offer, w.offer, w.claim, w.claim, w.claim, w.claim, w.heartbeat, w.heartbeat, w.heartbeat, w.phase, w.phase,
		w.appendLog, w.seal, w.complete, w.complete, w.reject, w.absent, w.recover, w.cancel, w.expire, w.small,
	}
	return one(d, kinds)(d)
}

func (w *world) process(d dice) *authority.Register {
	return &w.sessions[d.between(0, len(w.sessions)-1)]
}

func fenceOf(r *authority.Register) authority.Fence {
	return authority.Fence{Runner: r.Runner, Session: r.Session, TransportSeq: r.TransportSeq}
}

func (w *world) fence(d dice) authority.Fence { return fenceOf(w.process(d)) }

// context is that of a lease that was offered, mostly the latest; at times a part of it is another's.
func (w *world) context(d dice) forge.AttemptContext {
	if len(w.leases) == 0 {
		return forge.AttemptContext{Job: w.jobs[0], Attempt: make1[forge.AttemptID](w), Lease: make1[forge.LeaseID](w), Runner: w.runners[0]}
	}
	back := min(d.between(0, 3), len(w.leases)-1)
	c := w.leases[len(w.leases)-1-back]
	if d.between(0, 19) == 19 {
		c.Runner = w.runners[d.between(0, len(w.runners)-1)]
	}
	return c
}

// speaker is the fence of a lease's own session, or at times of anybody.
func (w *world) speaker(d dice, c forge.AttemptContext) authority.Fence {
	for i := range w.sessions {
		if s := &w.sessions[i]; s.Session == c.Session && d.between(0, 9) < 9 {
			return fenceOf(s)
		}
	}
	return w.fence(d)
}

func (w *world) register(d dice) authority.Command {
	p := w.process(d)
	p.TransportSeq += uint64(d.between(0, 1))
	c := *p
	c.CapabilityDigest = digest.Of([]byte{byte(d.between(0, 1))})
	return &c
}

func (w *world) offer(d dice) authority.Command {
	p := w.process(d)
	job := one(d, w.jobs)
	c := &authority.Offer{Fence: fenceOf(p), Job: job, Attempt: make1[forge.AttemptID](w), Lease: make1[forge.LeaseID](w)}
	if len(w.leases) > 0 && d.between(0, 19) == 19 {
		c.Attempt = w.leases[0].Attempt
	}
	return c
}

func (w *world) claim(d dice) authority.Command {
	c := w.context(d)
	return &authority.Claim{
		Fence: w.speaker(d, c), Context: c,
		Phase:    one(d, []forge.AttemptState{forge.AttemptOffered, forge.AttemptOffered, forge.AttemptPreparing, forge.AttemptRunning}),
		EventSeq: uint64(d.between(1, 4)),
		Watched:  w.watched(d, c.Lease),
	}
}

func (w *world) watched(d dice, lease forge.LeaseID) authority.Watched {
	return authority.Watched{
		Lease: lease, Renewals: w.renewals(d, lease), For: time.Duration(d.between(0, 40)) * time.Minute,
	}
}

// renewals are those of a lease, or at times less.
func (w *world) renewals(d dice, lease forge.LeaseID) uint64 {
	n := w.model.renewals(lease)
	return n - min(n, uint64(d.between(0, 4)/4))
}

func (w *world) heartbeat(d dice) authority.Command {
	first := w.context(d)
	c := &authority.Heartbeat{Fence: w.speaker(d, first)}
	names := map[forge.LeaseID]bool{}
	for range d.between(0, 6) {
		names[w.context(d).Lease] = true
	}
	for id := range names {
		c.Leases = append(c.Leases, id)
	}
	slices.SortFunc(c.Leases, func(a, b forge.LeaseID) int { return a.Compare(b.ULID) })
	for _, id := range c.Leases {
		c.Watched = append(c.Watched, w.watched(d, id))
	}
	return c
}

func (w *world) phase(d dice) authority.Command {
	c := w.context(d)
	return &authority.Phase{
		Fence: w.speaker(d, c), Context: c, Seq: uint64(d.between(1, 4)),
		Phase: forge.AttemptState(d.between(1, 7)),
	}
}

// frames are the same whoever appends them: three of ten bytes.
func logHash(next forge.LogSeq) digest.Digest { return digest.Of([]byte{byte(next)}) }

func (w *world) appendLog(d dice) authority.Command {
	c := w.context(d)
	first := forge.LogSeq(1 + 3*d.between(0, 1))
	return &authority.AppendLog{Runner: c.Runner, Attempt: c.Attempt, First: first, Count: 3, Bytes: 30, Hash: logHash(first + 3)}
}

// sealOf is the seal of a log of so many parts.
func sealOf(parts int) forge.LogSeal {
	if parts == 0 {
		return forge.LogSeal{}
	}
	next := forge.LogSeq(1 + 3*parts)
	return forge.LogSeal{Last: next - 1, Bytes: uint64(30 * parts), Hash: logHash(next)}
}

func (w *world) seal(d dice) authority.Command {
	c := w.context(d)
	return &authority.SealLog{Fence: w.speaker(d, c), Context: c, Seal: sealOf(d.between(0, 1))}
}

func (w *world) complete(d dice) authority.Command {
	c := w.context(d)
	message, known := w.messages[c.Lease]
	if !known {
		message = make1[forge.MessageID](w)
		w.messages[c.Lease] = message
	}
	m := &forge.Completion{
		Context: c, Message: message, Capture: forge.Succeeded, Log: w.model.seal(c.Attempt),
		CancelSeen: d.between(0, 9) == 9,
		Result:     forge.Result{Class: one(d, []forge.Class{forge.Succeeded, forge.ExitCode, forge.Lost}), ExitCode: 1, Peak: ^uint64(0)},
	}
	if d.between(0, 9) == 9 {
		m.Log = sealOf(2)
	}
	if d.between(0, 3) == 3 {
		m.Outputs = []forge.OutputRef{outputOf(0)}
	}
	m.Hash = m.ResultHash()
	return &authority.Complete{Fence: w.speaker(d, c), Completion: m}
}

func outputOf(i uint16) forge.OutputRef {
	return forge.OutputRef{Output: i, Ref: digest.RefOf([]byte("output")), Tree: i%2 == 0}
}

func (w *world) reject(d dice) authority.Command {
	c := w.context(d)
	return &authority.Reject{Fence: w.speaker(d, c), Context: c, Reason: forge.RejectReason(d.between(1, 10))}
}

func (w *world) absent(d dice) authority.Command {
	c := w.context(d)
	return &authority.Absent{Fence: w.speaker(d, c), Context: c}
}

func (w *world) recover(d dice) authority.Command {
	c := w.context(d)
	return &authority.Recover{Fence: w.fence(d), Item: forge.RecoveredAttempt{
		Context: c, Killed: (d.between(0, 1) == 0), Completion: w.messages[c.Lease],
	}}
}

func (w *world) cancel(d dice) authority.Command {
	if len(w.leases) > 0 && d.between(0, 4) > 0 {
		return &authority.Revoke{Context: w.context(d)}
	}
	return &authority.CancelJob{Job: one(d, w.jobs)}
}

func (w *world) expire(d dice) authority.Command {
	c := w.context(d)
	return &authority.Expire{
		Context: c, State: forge.LeaseState(d.between(1, 2)), Renewals: w.renewals(d, c.Lease),
	}
}

func (w *world) small(d dice) authority.Command {
	c := w.context(d)
	switch d.between(0, 3) {
	case 0:
		return &authority.Touch{Fence: w.fence(d)}
	case 1:
		return &authority.CloseLog{Lease: c.Lease, Attempt: c.Attempt}
	case 2:
		return &authority.Plan{Job: c.Job, Spec: c.Spec}
	default:
		return &authority.SetRunner{
			Runner: c.Runner, Disabled: d.between(0, 9) == 9,
			Draining: d.between(0, 9) == 9,
		}
	}
}

// note remembers a lease that was offered.
func (w *world) note(cmd authority.Command, a authority.Answer) {
	if _, ok := cmd.(*authority.Offer); ok && a.Done {
		w.leases = append(w.leases, a.Context)
	}
}
