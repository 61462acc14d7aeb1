package authority

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// world is a store with its rows and one daemon that works on it, one transaction at a time, so that a test reads as a
// story. Each transaction loads exactly what its rule asked for, and is held against the rules of rules_test.go.
type world struct {
	t     rapid.TB
	now   forge.Instant // of the daemon's clock
	watch *Watch        // of the daemon
	rows  tables
	ids   uint64
}

// tables are the committed rows.
type tables struct {
	Sessions map[forge.RunnerID]Session
	Folders  map[folderKey]Folder
	Beats    map[forge.RunnerID]Beat
	Runners  map[forge.RunnerID]Runner
	Jobs     map[forge.JobID]Job
	Leases   map[forge.LeaseID]Lease
	Attempts map[forge.AttemptID]Attempt
	Logs     map[forge.AttemptID]Log
	Refs     map[forge.AttemptID]map[forge.OutputRef]RefState
}

type folderKey struct {
	Runner forge.RunnerID
	Folder forge.StateFolderID
}

func (t tables) clone() tables {
	return tables{
		maps.Clone(t.Sessions), maps.Clone(t.Folders), maps.Clone(t.Beats), maps.Clone(t.Runners), maps.Clone(t.Jobs),
		maps.Clone(t.Leases), maps.Clone(t.Attempts), maps.Clone(t.Logs), maps.Clone(t.Refs),
	}
}

// policy is the one that is used where nothing is configured.
var policy = forge.DefaultLeasePolicy()

// hardTTL and maxLifetime are those of every lease here.
const (
	hardTTL     = 120 * time.Second
	maxLifetime = 30 * time.Minute
)

func newWorld(t rapid.TB) *world {
	return &world{t: t, now: forge.Instant(time.Hour), watch: NewWatch(policy), rows: tables{
		map[forge.RunnerID]Session{},
		map[folderKey]Folder{},
		map[forge.RunnerID]Beat{},
		map[forge.RunnerID]Runner{},
		map[forge.JobID]Job{},
		map[forge.LeaseID]Lease{},
		map[forge.AttemptID]Attempt{},
		map[forge.AttemptID]Log{},
		map[forge.AttemptID]map[forge.OutputRef]RefState{},
	}}
}

// id returns bits that were not used before.
func (w *world) id() forge.ULID {
	w.ids++
	return forge.ULID{14: byte(w.ids >> 8), 15: byte(w.ids)}
}

// run carries out a rule as one transaction.
func (w *world) run(cmd Command) Answer {
	w.t.Helper()
	keys := cmd.Keys(nil)
	var rows Rows
	for _, key := range keys {
		w.load(&rows, key, cmd)
	}
	loaded := rows
	loaded.Held = slices.Clone(rows.Held)
	before := w.rows.clone()
	answer := cmd.Apply(&rows)
	w.checkLocks(cmd, keys, &loaded, &rows)
	w.write(&rows)
	w.checkChange(&before)
	w.checkRows()
	return answer
}

// load carries out one statement.
func (w *world) load(r *Rows, key Key, cmd Command) {
	runner, attempt := forge.RunnerID{ULID: key.ID}, forge.AttemptID{ULID: key.ID}
	switch key.Table {
	case TableSession:
		r.Session = find(w.rows.Sessions, runner)
	case TableFolder:
		r.Folder = find(w.rows.Folders, folderKey{runner, forge.StateFolderID{ULID: key.Sub}})
	case TableBeat:
		r.Beat = find(w.rows.Beats, runner)
	case TableRunner:
		r.Runner = find(w.rows.Runners, runner)
	case TableOpenLeases:
		r.OpenLeases = len(w.open(runner))
	case TableJob:
		r.Job = find(w.rows.Jobs, forge.JobID{ULID: key.ID})
	case TableLease:
		r.Lease = find(w.rows.Leases, forge.LeaseID{ULID: key.ID})
		r.Attempt = find(w.rows.Attempts, r.Lease.Value.Context.Attempt)
	case TableHeld:
		lease := find(w.rows.Leases, forge.LeaseID{ULID: key.ID})
		r.Held = append(r.Held, HeldLease{Lease: lease, Cancel: w.rows.Jobs[lease.Value.Context.Job].CancelRequested})
	case TableLog:
		r.Log = find(w.rows.Logs, attempt)
	case TableRefs:
		for _, ref := range cmd.(*Complete).Refs() {
			r.Refs = append(r.Refs, w.rows.Refs[attempt][ref])
		}
	}
}

func find[K comparable, T any](rows map[K]T, key K) Row[T] {
	value, found := rows[key]
	return Row[T]{Value: value, Found: found}
}

// write commits what the rule marked. The store makes the log of an attempt together with its lease.
func (w *world) write(r *Rows) {
	put(w.rows.Sessions, r.Session.Value.Runner, r.Session)
	put(w.rows.Folders, folderKey{r.Folder.Value.Runner, r.Folder.Value.StateFolder}, r.Folder)
	put(w.rows.Beats, r.Beat.Value.Runner, r.Beat)
	put(w.rows.Runners, r.Runner.Value.ID, r.Runner)
	put(w.rows.Jobs, r.Job.Value.ID, r.Job)
	put(w.rows.Attempts, r.Attempt.Value.ID, r.Attempt)
	put(w.rows.Logs, r.Log.Value.Attempt, r.Log)
	put(w.rows.Leases, r.Lease.Value.Context.Lease, r.Lease)
	for _, held := range r.Held {
		put(w.rows.Leases, held.Lease.Value.Context.Lease, held.Lease)
	}
	if c := r.Lease.Value.Context; r.Lease.Dirty && !r.Lease.Found {
		w.rows.Logs[c.Attempt] = Log{Attempt: c.Attempt, Runner: c.Runner, Next: 1}
	}
}

func put[K comparable, T any](rows map[K]T, key K, row Row[T]) {
	if row.Dirty {
		rows[key] = row.Value
	}
}

// open lists the open leases, of one runner or of all, in the order of their making.
func (w *world) open(runner forge.RunnerID) []Lease {
	var open []Lease
	for _, l := range w.rows.Leases {
		if !l.State.Ended() && (runner.IsZero() || l.Context.Runner == runner) {
			open = append(open, l)
		}
	}
	slices.SortFunc(open, func(a, b Lease) int { return a.Context.Lease.Compare(b.Context.Lease.ULID) })
	return open
}

// look is one complete reading by the daemon.
func (w *world) look() {
	w.watch.SeeAll(w.now, w.open(forge.RunnerID{}))
	for runner := range w.rows.Sessions {
		s := w.rows.Sessions[runner]
		w.watch.SeeSession(w.now, &s, w.rows.Beats[runner].Count)
	}
}

// pass lets time go by unseen.
func (w *world) pass(d time.Duration) { w.now = w.now.Add(d) }

// watchFor lets time go by with a reading at its beginning and each second, as a daemon reads.
func (w *world) watchFor(d time.Duration) {
	w.look()
	for until := w.now.Add(d); w.now < until; w.look() {
		w.pass(min(time.Second, until.Sub(w.now)))
	}
}

// restartDaemon makes the daemon forget what it has seen.
func (w *world) restartDaemon() { w.watch = NewWatch(policy) }

// sweep expires whatever the daemon has watched for long enough, and returns how many leases that ended.
func (w *world) sweep() int {
	w.t.Helper()
	ended := 0
	for _, cmd := range w.watch.Due(w.now, nil) {
		if w.run(cmd).Done {
			ended++
		}
	}
	return ended
}
