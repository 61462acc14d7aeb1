package storetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Model is a store in memory: maps under one lock, a transaction at a time.
type Model struct {
	mu   sync.Mutex
	rows tables
}

type folderKey struct {
	runner forge.RunnerID
	folder forge.StateFolderID
}

type refKey struct {
	attempt forge.AttemptID
	ref     forge.OutputRef
}

type tables struct {
	sessions map[forge.RunnerID]authority.Session
	folders  map[folderKey]authority.Folder
	beats    map[forge.RunnerID]authority.Beat
	runners  map[forge.RunnerID]authority.Runner
	jobs     map[forge.JobID]authority.Job
	leases   map[forge.LeaseID]authority.Lease
	attempts map[forge.AttemptID]authority.Attempt
	logs     map[forge.AttemptID]authority.Log
	refs     map[refKey]authority.RefState
	runs     map[forge.RunID][]forge.JobID
}

// NewModel returns an empty store in memory.
func NewModel() *Model {
	return &Model{rows: tables{
		sessions: map[forge.RunnerID]authority.Session{}, folders: map[folderKey]authority.Folder{},
		beats: map[forge.RunnerID]authority.Beat{}, runners: map[forge.RunnerID]authority.Runner{},
		jobs: map[forge.JobID]authority.Job{}, leases: map[forge.LeaseID]authority.Lease{},
		attempts: map[forge.AttemptID]authority.Attempt{}, logs: map[forge.AttemptID]authority.Log{},
		refs: map[refKey]authority.RefState{}, runs: map[forge.RunID][]forge.JobID{},
	}}
}

// clone returns a model with the same rows.
func (m *Model) clone() *Model {
	m.mu.Lock()
	defer m.mu.Unlock()
	t := &m.rows
	return &Model{rows: tables{
		maps.Clone(t.sessions), maps.Clone(t.folders), maps.Clone(t.beats), maps.Clone(t.runners), maps.Clone(t.jobs),
		maps.Clone(t.leases), maps.Clone(t.attempts), maps.Clone(t.logs), maps.Clone(t.refs), maps.Clone(t.runs),
	}}
}

// renewals are those of a lease, or none.
func (m *Model) renewals(lease forge.LeaseID) uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows.leases[lease].Renewals
}

// seal is that of an attempt's log, or none.
func (m *Model) seal(attempt forge.AttemptID) forge.LogSeal {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows.logs[attempt].Seal
}

// MakeRunner implements Rules.
func (m *Model) MakeRunner(_ context.Context, n store.NewRunner) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.rows.runners[n.ID]; there {
		return store.ErrExists
	}
	m.rows.runners[n.ID] = authority.Runner{ID: n.ID, Slots: n.Slots}
	m.rows.sessions[n.ID] = authority.Session{Runner: n.ID}
	m.rows.beats[n.ID] = authority.Beat{Runner: n.ID}
	return nil
}

// MakeRun implements Rules.
func (m *Model) MakeRun(_ context.Context, n store.NewRun) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, j := range n.Jobs {
		m.rows.jobs[j.ID] = authority.Job{
			ID: j.ID, State: forge.JobReady, Spec: j.Draft, HardTTL: j.Terms.HardTTL, MaxLifetime: j.Terms.MaxLifetime,
			Retry: &j.Terms.Retry,
		}
		m.rows.runs[n.ID] = append(m.rows.runs[n.ID], j.ID)
	}
	return nil
}

// Upload implements Rules.
func (m *Model) Upload(_ context.Context, attempt forge.AttemptID, ref forge.OutputRef, live bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows.refs[refKey{attempt, ref}] = authority.RefState{Known: true, Live: live}
	return nil
}

// Do implements Rules.
func (m *Model) Do(_ context.Context, _ store.Class, cmd authority.Command) (authority.Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows authority.Rows
	for _, key := range cmd.Keys(nil) {
		m.rows.load(&rows, key, cmd)
	}
	answer := cmd.Apply(&rows)
	if err := m.rows.check(&rows); err != nil {
		return authority.Answer{}, err
	}
	m.rows.write(&rows)
	return answer, nil
}

func (t *tables) load(r *authority.Rows, key authority.Key, cmd authority.Command) {
	runner, attempt := forge.RunnerID{ULID: key.ID}, forge.AttemptID{ULID: key.ID}
	switch key.Table {
	case authority.TableSession:
		r.Session = find(t.sessions, runner)
	case authority.TableFolder:
		r.Folder = find(t.folders, folderKey{runner, forge.StateFolderID{ULID: key.Sub}})
	case authority.TableBeat:
		r.Beat = find(t.beats, runner)
	case authority.TableRunner:
		r.Runner = find(t.runners, runner)
	case authority.TableOpenLeases:
		r.OpenLeases = len(t.open(runner))
	case authority.TableJob:
		r.Job = find(t.jobs, forge.JobID{ULID: key.ID})
	case authority.TableLease:
		r.Lease = find(t.leases, forge.LeaseID{ULID: key.ID})
		r.Attempt = find(t.attempts, r.Lease.Value.Context.Attempt)
	case authority.TableHeld:
		l := find(t.leases, forge.LeaseID{ULID: key.ID})
		r.Held = append(r.Held, authority.HeldLease{Lease: l, Cancel: t.jobs[l.Value.Context.Job].CancelRequested})
	case authority.TableLog:
		r.Log = find(t.logs, attempt)
	case authority.TableRefs:
		for _, ref := range cmd.(*authority.Complete).Refs() {
			r.Refs = append(r.Refs, t.refs[refKey{attempt, ref}])
		}
	}
}

func find[K comparable, T any](rows map[K]T, key K) authority.Row[T] {
	value, found := rows[key]
	return authority.Row[T]{Value: value, Found: found}
}

// check is the unique indexes: one open lease for a job, an id once.
func (t *tables) check(r *authority.Rows) error {
	if !r.Lease.Dirty || r.Lease.Found {
		return nil
	}
	if _, there := t.attempts[r.Attempt.Value.ID]; there {
		return fmt.Errorf("%w: attempt %v", store.ErrExists, r.Attempt.Value.ID)
	}
	for _, l := range t.leases {
		if !l.State.Ended() && l.Context.Job == r.Lease.Value.Context.Job {
			return fmt.Errorf("%w: an open lease on job %v", store.ErrExists, l.Context.Job)
		}
	}
	return nil
}

func (t *tables) write(r *authority.Rows) {
	put(t.sessions, r.Session.Value.Runner, r.Session)
	put(t.folders, folderKey{r.Folder.Value.Runner, r.Folder.Value.StateFolder}, r.Folder)
	put(t.beats, r.Beat.Value.Runner, r.Beat)
	put(t.runners, r.Runner.Value.ID, r.Runner)
	put(t.jobs, r.Job.Value.ID, r.Job)
	put(t.attempts, r.Attempt.Value.ID, r.Attempt)
	put(t.logs, r.Log.Value.Attempt, r.Log)
	put(t.leases, r.Lease.Value.Context.Lease, r.Lease)
	for _, held := range r.Held {
		put(t.leases, held.Lease.Value.Context.Lease, held.Lease)
	}
	if c := r.Lease.Value.Context; r.Lease.Dirty && !r.Lease.Found {
		t.logs[c.Attempt] = authority.Log{Attempt: c.Attempt, Runner: c.Runner, Next: 1}
	}
}

func put[K comparable, T any](rows map[K]T, key K, row authority.Row[T]) {
	if row.Dirty {
		rows[key] = row.Value
	}
}

// open lists the open leases of a runner or, with a zero id, of all, by id.
func (t *tables) open(runner forge.RunnerID) []authority.Lease {
	var open []authority.Lease
	for _, l := range t.leases {
		if !l.State.Ended() && (runner.IsZero() || l.Context.Runner == runner) {
			open = append(open, l)
		}
	}
	slices.SortFunc(open, func(a, b authority.Lease) int { return a.Context.Lease.Compare(b.Context.Lease.ULID) })
	return open
}

// Snapshot implements Rules.
func (m *Model) Snapshot(_ context.Context, runner forge.RunnerID) (*authority.Snapshot, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	snap := &authority.Snapshot{Leases: m.rows.open(runner)}
	for _, l := range snap.Leases {
		snap.Cancel = append(snap.Cancel, m.rows.jobs[l.Context.Job].CancelRequested)
	}
	ids := slices.SortedFunc(maps.Keys(m.rows.runners), func(a, b forge.RunnerID) int { return a.Compare(b.ULID) })
	for _, id := range ids {
		if runner.IsZero() || id == runner {
			snap.Sessions = append(snap.Sessions, authority.SeenSession{
				Session: m.rows.sessions[id], Beats: m.rows.beats[id].Count, Runner: m.rows.runners[id],
			})
		}
	}
	return snap, nil
}

// Jobs implements Rules.
func (m *Model) Jobs(_ context.Context, run forge.RunID) ([]authority.Job, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var jobs []authority.Job
	for _, id := range m.rows.runs[run] {
		jobs = append(jobs, m.rows.jobs[id])
	}
	return jobs, nil
}

// Attempts implements Rules.
func (m *Model) Attempts(_ context.Context, job forge.JobID) ([]Attempt, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []Attempt
	for _, l := range m.rows.leases {
		if l.Context.Job == job {
			list = append(list, Attempt{m.rows.attempts[l.Context.Attempt], l, m.rows.logs[l.Context.Attempt]})
		}
	}
	slices.SortFunc(list, func(a, b Attempt) int { return cmp.Compare(a.Attempt.Number, b.Attempt.Number) })
	return list, nil
}
