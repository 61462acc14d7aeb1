package storetest

import (
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

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
	for range 3 {
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
		switch i {
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
func (w *world) draw(t *rapid.T) authority.Command {
	kinds := []func(*rapid.T) authority.Command{
		w.register, w.offer, w.offer, w.claim, w.claim, w.heartbeat, w.phase, w.appendLog, w.seal, w.complete, w.complete,
		w.reject, w.absent, w.recover, w.cancel, w.expire, w.small,
	}
	return rapid.SampledFrom(kinds).Draw(t, "kind")(t)
}

func (w *world) process(t *rapid.T) *authority.Register {
	return &w.sessions[rapid.IntRange(0, len(w.sessions)-1).Draw(t, "process")]
}

func fenceOf(r *authority.Register) authority.Fence {
	return authority.Fence{Runner: r.Runner, Session: r.Session, TransportSeq: r.TransportSeq}
}

func (w *world) fence(t *rapid.T) authority.Fence { return fenceOf(w.process(t)) }

// context is that of a lease that was offered, mostly the latest; at times a part of it is another's.
func (w *world) context(t *rapid.T) forge.AttemptContext {
	if len(w.leases) == 0 {
		return forge.AttemptContext{Job: w.jobs[0], Attempt: make1[forge.AttemptID](w), Lease: make1[forge.LeaseID](w), Runner: w.runners[0]}
	}
	back := min(rapid.IntRange(0, 3).Draw(t, "back"), len(w.leases)-1)
	c := w.leases[len(w.leases)-1-back]
	if rapid.IntRange(0, 19).Draw(t, "garble") == 0 {
		c.Runner = w.runners[rapid.IntRange(0, len(w.runners)-1).Draw(t, "runner")]
	}
	return c
}

// speaker is the fence of a lease's own session, or at times of anybody.
func (w *world) speaker(t *rapid.T, c forge.AttemptContext) authority.Fence {
	for i := range w.sessions {
		if s := &w.sessions[i]; s.Session == c.Session && rapid.IntRange(0, 9).Draw(t, "own") > 0 {
			return fenceOf(s)
		}
	}
	return w.fence(t)
}

func (w *world) register(t *rapid.T) authority.Command {
	p := w.process(t)
	p.TransportSeq += uint64(rapid.IntRange(0, 1).Draw(t, "reconnects"))
	c := *p
	c.CapabilityDigest = digest.Of([]byte{byte(rapid.IntRange(0, 1).Draw(t, "capabilities"))})
	return &c
}

func (w *world) offer(t *rapid.T) authority.Command {
	p := w.process(t)
	job := rapid.SampledFrom(w.jobs).Draw(t, "job")
	c := &authority.Offer{Fence: fenceOf(p), Job: job, Attempt: make1[forge.AttemptID](w), Lease: make1[forge.LeaseID](w)}
	if len(w.leases) > 0 && rapid.IntRange(0, 19).Draw(t, "reuse") == 0 {
		c.Attempt = w.leases[0].Attempt
	}
	return c
}

func (w *world) claim(t *rapid.T) authority.Command {
	c := w.context(t)
	return &authority.Claim{
		Fence: w.speaker(t, c), Context: c,
		Phase:    rapid.SampledFrom([]forge.AttemptState{forge.AttemptOffered, forge.AttemptOffered, forge.AttemptPreparing, forge.AttemptRunning}).Draw(t, "phase"),
		EventSeq: rapid.Uint64().Draw(t, "event"),
		Watched:  w.watched(t, c.Lease),
	}
}

func (w *world) watched(t *rapid.T, lease forge.LeaseID) authority.Watched {
	return authority.Watched{
		Lease: lease, Renewals: uint64(rapid.IntRange(0, 3).Draw(t, "renewals")),
		For: time.Duration(rapid.IntRange(0, 40).Draw(t, "watched")) * time.Minute,
	}
}

func (w *world) heartbeat(t *rapid.T) authority.Command {
	first := w.context(t)
	c := &authority.Heartbeat{Fence: w.speaker(t, first)}
	names := map[forge.LeaseID]bool{}
	for range rapid.IntRange(0, 6).Draw(t, "leases") {
		names[w.context(t).Lease] = true
	}
	for id := range names {
		c.Leases = append(c.Leases, id)
	}
	slices.SortFunc(c.Leases, func(a, b forge.LeaseID) int { return a.Compare(b.ULID) })
	for _, id := range c.Leases {
		c.Watched = append(c.Watched, w.watched(t, id))
	}
	return c
}

func (w *world) phase(t *rapid.T) authority.Command {
	c := w.context(t)
	return &authority.Phase{
		Fence: w.speaker(t, c), Context: c, Seq: rapid.Uint64().Draw(t, "seq"),
		Phase: forge.AttemptState(rapid.IntRange(1, 7).Draw(t, "phase")),
	}
}

// frames are the same whoever appends them: three of ten bytes.
func logHash(next forge.LogSeq) digest.Digest { return digest.Of([]byte{byte(next)}) }

func (w *world) appendLog(t *rapid.T) authority.Command {
	c := w.context(t)
	first := forge.LogSeq(1 + 3*rapid.IntRange(0, 1).Draw(t, "part"))
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

func (w *world) seal(t *rapid.T) authority.Command {
	c := w.context(t)
	return &authority.SealLog{Fence: w.speaker(t, c), Context: c, Seal: sealOf(rapid.IntRange(0, 1).Draw(t, "parts"))}
}

func (w *world) complete(t *rapid.T) authority.Command {
	c := w.context(t)
	message, known := w.messages[c.Lease]
	if !known {
		message = make1[forge.MessageID](w)
		w.messages[c.Lease] = message
	}
	m := &forge.Completion{
		Context: c, Message: message, Capture: forge.Succeeded, Log: sealOf(rapid.IntRange(0, 1).Draw(t, "parts")),
		CancelSeen: rapid.IntRange(0, 9).Draw(t, "cancelled") == 0,
		Result:     forge.Result{Class: rapid.SampledFrom([]forge.Class{forge.Succeeded, forge.ExitCode, forge.Lost}).Draw(t, "class"), ExitCode: 1, Peak: ^uint64(0)},
	}
	if rapid.IntRange(0, 3).Draw(t, "outputs") == 0 {
		m.Outputs = []forge.OutputRef{outputOf(0)}
	}
	m.Hash = m.ResultHash()
	return &authority.Complete{Fence: w.speaker(t, c), Completion: m}
}

func outputOf(i uint16) forge.OutputRef {
	return forge.OutputRef{Output: i, Ref: digest.RefOf([]byte("output")), Tree: i%2 == 0}
}

func (w *world) reject(t *rapid.T) authority.Command {
	c := w.context(t)
	return &authority.Reject{Fence: w.speaker(t, c), Context: c, Reason: forge.RejectReason(rapid.IntRange(1, 10).Draw(t, "reason"))}
}

func (w *world) absent(t *rapid.T) authority.Command {
	c := w.context(t)
	return &authority.Absent{Fence: w.speaker(t, c), Context: c}
}

func (w *world) recover(t *rapid.T) authority.Command {
	c := w.context(t)
	return &authority.Recover{Fence: w.fence(t), Item: forge.RecoveredAttempt{
		Context: c, Killed: rapid.Bool().Draw(t, "killed"), Completion: w.messages[c.Lease],
	}}
}

func (w *world) cancel(t *rapid.T) authority.Command {
	if len(w.leases) > 0 && rapid.Bool().Draw(t, "revoke") {
		return &authority.Revoke{Context: w.context(t)}
	}
	return &authority.CancelJob{Job: rapid.SampledFrom(w.jobs).Draw(t, "job")}
}

func (w *world) expire(t *rapid.T) authority.Command {
	return &authority.Expire{
		Context: w.context(t), State: forge.LeaseState(rapid.IntRange(1, 2).Draw(t, "state")),
		Renewals: uint64(rapid.IntRange(0, 2).Draw(t, "renewals")),
	}
}

func (w *world) small(t *rapid.T) authority.Command {
	c := w.context(t)
	switch rapid.IntRange(0, 3).Draw(t, "small") {
	case 0:
		return &authority.Touch{Fence: w.fence(t)}
	case 1:
		return &authority.CloseLog{Lease: c.Lease, Attempt: c.Attempt}
	case 2:
		return &authority.Plan{Job: c.Job, Spec: c.Spec}
	default:
		return &authority.SetRunner{
			Runner: c.Runner, Disabled: rapid.IntRange(0, 4).Draw(t, "disabled") == 0,
			Draining: rapid.IntRange(0, 4).Draw(t, "draining") == 0,
		}
	}
}

// note remembers a lease that was offered.
func (w *world) note(cmd authority.Command, a authority.Answer) {
	if _, ok := cmd.(*authority.Offer); ok && a.Done {
		w.leases = append(w.leases, a.Context)
	}
}
