package sim

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// store is the database: rows, their locks, and transactions. In serial mode a transaction is one step. In READ
// COMMITTED mode each statement is a step of its own: it waits for its row lock, sees what is committed at that moment,
// and other transactions run in between. Either way, what a transaction writes appears at its commit.
type store struct {
	w          *World
	interleave bool
	stalled    int64 // nothing moves before this moment
	sessions   map[forge.RunnerID]*record[authority.Session]
	folders    map[folderKey]*record[authority.Folder]
	beats      map[forge.RunnerID]*record[authority.Beat]
	runners    map[forge.RunnerID]*record[authority.Runner]
	jobs       map[forge.JobID]*record[authority.Job]
	leases     map[forge.LeaseID]*record[authority.Lease]
	attempts   map[forge.AttemptID]*record[authority.Attempt]
	logs       map[forge.AttemptID]*record[authority.Log]
	refs       map[forge.AttemptID]*refs
	open       []*record[authority.Lease]
	all        []*record[authority.Lease]
}

type folderKey struct {
	runner forge.RunnerID
	folder forge.StateFolderID
}

// refs is what is stored of an attempt's output.
type refs struct {
	ref  forge.OutputRef
	live bool
}

// record is a row with its lock.
type record[T any] struct {
	value T
	found bool
	lock  rowLock
}

func newStore(w *World) *store {
	return &store{
		w: w, interleave: w.shape.interleave,
		sessions: map[forge.RunnerID]*record[authority.Session]{}, folders: map[folderKey]*record[authority.Folder]{},
		beats: map[forge.RunnerID]*record[authority.Beat]{}, runners: map[forge.RunnerID]*record[authority.Runner]{},
		jobs: map[forge.JobID]*record[authority.Job]{}, leases: map[forge.LeaseID]*record[authority.Lease]{},
		attempts: map[forge.AttemptID]*record[authority.Attempt]{}, logs: map[forge.AttemptID]*record[authority.Log]{},
		refs: map[forge.AttemptID]*refs{},
	}
}

// row returns the record of a key, found or not.
func row[K comparable, T any](rows map[K]*record[T], key K) *record[T] {
	r := rows[key]
	if r == nil {
		r = &record[T]{}
		rows[key] = r
	}
	return r
}

func (s *store) job(id forge.JobID) authority.Job { return row(s.jobs, id).value }

// txn is a transaction on its way.
type txn struct {
	owner  *daemon
	life   uint64 // of the owner: a daemon that died does not hear the answer
	cmd    authority.Command
	keys   []authority.Key
	next   int
	rows   authority.Rows
	held   []*rowLock
	from   int64
	op     *operation    // in the history
	before authority.Job // as committed before this transaction's commit
	then   func(committed, unknown bool, answer authority.Answer)
}

// run carries a rule out. then hears how it ended, unless the daemon dies before.
func (s *store) run(d *daemon, cmd authority.Command, then func(committed, unknown bool, answer authority.Answer)) {
	t := &txn{owner: d, life: d.life, cmd: cmd, keys: cmd.Keys(nil), then: then, from: s.w.now}
	s.w.strikeBegun(cmd)
	delay := s.latency()
	if s.w.faulty && s.w.chance(20) {
		delay += int64(s.w.between(0, 3*time.Second)) // the way to the store is long today
	}
	s.w.at(s.ready(delay), func() { s.advance(t) })
}

// ready is the moment after a delay at which the store moves.
func (s *store) ready(delay int64) int64 { return max(s.w.now+delay, s.stalled) }

// latency is the time of one statement.
func (s *store) latency() int64 { return int64(s.w.rng.IntN(2_000_000)) + 20_000 }

// advance runs the next statement, or all of them in serial mode.
func (s *store) advance(t *txn) {
	s.w.explore.touch(partStore)
	if t.owner.life != t.life {
		s.release(t)
		return
	}
	for t.next < len(t.keys) {
		key := t.keys[t.next]
		if s.interleave && key.Lock != authority.Read && !s.acquire(t, key) {
			s.w.reach(LockWaited)
			return
		}
		s.load(t, key)
		t.next++
		if s.interleave {
			s.w.at(s.ready(s.latency()/4), func() { s.advance(t) })
			return
		}
	}
	if s.interleave {
		s.apply(t)
		return
	}
	s.finish(t, t.cmd.Apply(&t.rows))
}

// apply decides, and commits a moment later.
func (s *store) apply(t *txn) {
	answer := t.cmd.Apply(&t.rows)
	s.w.at(s.ready(s.latency()/2), func() { s.finish(t, answer) })
}

// finish commits and answers. A fault may take the commit, the answer, or both.
func (s *store) finish(t *txn, answer authority.Answer) {
	s.w.explore.touch(partStore)
	dead := t.owner.life != t.life
	fate := s.w.drawFate(dead)
	if s.w.loseAnswer {
		s.w.loseAnswer, fate = false, fateCommittedUnknown
	}
	if s.duplicateOpen(t) {
		fate = fateRefused
	}
	if fate == fateCommitted || fate == fateCommittedUnknown {
		s.w.beforeCommit(t, answer)
		t.before = s.job(t.rows.Job.Value.ID)
		s.write(t)
		s.w.afterCommit(t, answer)
	}
	s.release(t)
	s.w.noteOperation(t, answer, fate)
	if dead {
		return
	}
	delay := s.latency() / 4
	if s.w.faulty && s.w.chance(20) {
		delay += int64(s.w.between(0, 2*time.Second)) // and so is the way back: answers overtake each other
	}
	s.w.at(s.ready(delay), func() {
		if t.owner.life == t.life {
			if t.op != nil && !t.op.unknown {
				t.op.heard = s.w.now
			}
			t.then(fate == fateCommitted, fate == fateCommittedUnknown || fate == fateLostUnknown, answer)
		}
	})
}

// duplicateOpen is the unique index: one open lease for a job.
func (s *store) duplicateOpen(t *txn) bool {
	if !t.rows.Lease.Dirty || t.rows.Lease.Found {
		return false
	}
	for _, l := range s.open {
		if l.value.Context.Job == t.rows.Lease.Value.Context.Job {
			return true
		}
	}
	return false
}

// load reads what one statement asks for.
func (s *store) load(t *txn, key authority.Key) {
	r := &t.rows
	switch key.Table {
	case authority.TableSession:
		r.Session = read(row(s.sessions, forge.RunnerID{ULID: key.ID}))
	case authority.TableFolder:
		r.Folder = read(row(s.folders, folderKey{forge.RunnerID{ULID: key.ID}, forge.StateFolderID{ULID: key.Sub}}))
	case authority.TableBeat:
		r.Beat = read(row(s.beats, forge.RunnerID{ULID: key.ID}))
	case authority.TableRunner:
		r.Runner = read(row(s.runners, forge.RunnerID{ULID: key.ID}))
	case authority.TableOpenLeases:
		r.OpenLeases = s.openOf(forge.RunnerID{ULID: key.ID})
	case authority.TableJob:
		r.Job = read(row(s.jobs, forge.JobID{ULID: key.ID}))
	case authority.TableLease:
		r.Lease = read(row(s.leases, forge.LeaseID{ULID: key.ID}))
		if r.Lease.Found {
			r.Attempt = read(row(s.attempts, r.Lease.Value.Context.Attempt))
		}
	case authority.TableHeld:
		l := read(row(s.leases, forge.LeaseID{ULID: key.ID}))
		r.Held = append(r.Held, authority.HeldLease{Lease: l, Cancel: s.job(l.Value.Context.Job).CancelRequested})
	case authority.TableLog:
		r.Log = read(row(s.logs, forge.AttemptID{ULID: key.ID}))
	case authority.TableRefs:
		if c, ok := t.cmd.(*authority.Complete); ok {
			r.Refs = s.refStates(c)
		}
	}
}

func read[T any](r *record[T]) authority.Row[T] {
	return authority.Row[T]{Value: r.value, Found: r.found}
}

func (s *store) openOf(runner forge.RunnerID) int {
	n := 0
	for _, l := range s.open {
		if l.value.Context.Runner == runner {
			n++
		}
	}
	return n
}

// loseOutputs loses what was uploaded by attempts that have not ended.
func (s *store) loseOutputs() {
	for id, stored := range s.refs {
		if !row(s.attempts, id).value.State.Ended() {
			stored.live = false
		}
	}
}

func (s *store) refStates(c *authority.Complete) []authority.RefState {
	var list []authority.RefState
	for _, ref := range c.Refs() {
		stored := s.refs[c.Completion.Context.Attempt]
		known := stored != nil && stored.ref == ref
		list = append(list, authority.RefState{Known: known, Live: known && stored.live})
	}
	return list
}

// write makes the changes visible.
func (s *store) write(t *txn) {
	r := &t.rows
	write(&r.Session, func(v authority.Session) *record[authority.Session] { return row(s.sessions, v.Runner) })
	write(&r.Folder, func(v authority.Folder) *record[authority.Folder] {
		return row(s.folders, folderKey{v.Runner, v.StateFolder})
	})
	write(&r.Beat, func(v authority.Beat) *record[authority.Beat] { return row(s.beats, v.Runner) })
	write(&r.Runner, func(v authority.Runner) *record[authority.Runner] { return row(s.runners, v.ID) })
	write(&r.Job, func(v authority.Job) *record[authority.Job] { return row(s.jobs, v.ID) })
	write(&r.Attempt, func(v authority.Attempt) *record[authority.Attempt] { return row(s.attempts, v.ID) })
	write(&r.Log, func(v authority.Log) *record[authority.Log] { return row(s.logs, v.Attempt) })
	s.writeLease(&r.Lease)
	for i := range r.Held {
		s.writeLease(&r.Held[i].Lease)
	}
}

func write[T any](r *authority.Row[T], at func(T) *record[T]) {
	if !r.Dirty {
		return
	}
	rec := at(r.Value)
	rec.value, rec.found = r.Value, true
}

// writeLease writes a lease and keeps the index of the open ones.
func (s *store) writeLease(r *authority.Row[authority.Lease]) {
	if !r.Dirty {
		return
	}
	rec := row(s.leases, r.Value.Context.Lease)
	if !rec.found {
		s.open = append(s.open, rec)
		s.all = append(s.all, rec)
		attempt := r.Value.Context.Attempt
		log := row(s.logs, attempt)
		log.value, log.found = authority.Log{Attempt: attempt, Runner: r.Value.Context.Runner, Next: 1}, true
	}
	if r.Value.Renewals != rec.value.Renewals {
		s.w.renewedAt[r.Value.Context.Lease] = s.w.now
	}
	rec.value, rec.found = r.Value, true
	if r.Value.State.Ended() {
		for i, o := range s.open {
			if o == rec {
				s.open = append(s.open[:i], s.open[i+1:]...)
				break
			}
		}
	}
}

// snapshot reads the watched rows at some moment between now and the answer.
func (s *store) snapshot(d *daemon, runner forge.RunnerID, then func(*authority.Snapshot)) {
	life := d.life
	s.w.at(s.ready(s.latency()), func() {
		if d.life != life {
			return
		}
		s.w.explore.touch(partStore)
		snap := s.take(runner)
		s.w.at(s.ready(s.latency()/2), func() {
			if d.life == life {
				then(snap)
			}
		})
	})
}

func (s *store) take(runner forge.RunnerID) *authority.Snapshot {
	snap := &authority.Snapshot{
		Leases: make([]authority.Lease, 0, len(s.open)), Cancel: make([]bool, 0, len(s.open)),
		Sessions: make([]authority.SeenSession, 0, len(s.w.runners)),
	}
	for _, r := range s.w.runners {
		if runner.IsZero() || r.id == runner {
			snap.Sessions = append(snap.Sessions, authority.SeenSession{
				Session: row(s.sessions, r.id).value, Beats: row(s.beats, r.id).value.Count, Runner: row(s.runners, r.id).value,
			})
		}
	}
	for _, l := range s.open {
		if runner.IsZero() || l.value.Context.Runner == runner {
			snap.Leases = append(snap.Leases, l.value)
			snap.Cancel = append(snap.Cancel, s.job(l.value.Context.Job).CancelRequested)
		}
	}
	return snap
}
