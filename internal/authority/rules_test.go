package authority

import (
	"reflect"
	"slices"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// What must hold of every transaction, whatever the test is about.

// checkLocks: locks are taken in the order of the tables; a rule changes only what it marks, and marks only what it has
// locked for update. An attempt is under the lock of its lease, a new one too.
func (w *world) checkLocks(cmd Command, keys []Key, loaded, rows *Rows) {
	w.t.Helper()
	for i := 1; i < len(keys); i++ {
		a, b := keys[i-1], keys[i]
		if a.Table > b.Table || a.Table == b.Table && a.ID.Compare(b.ID) >= 0 {
			w.t.Fatalf("%T locks %v after %v", cmd, b, a)
		}
	}
	r := rows
	checkRow(w, cmd, keys, TableSession, r.Session.Value.Runner.ULID, &loaded.Session, &r.Session)
	checkRow(w, cmd, keys, TableFolder, r.Folder.Value.Runner.ULID, &loaded.Folder, &r.Folder)
	if f := r.Folder; f.Dirty && !slices.ContainsFunc(keys, func(k Key) bool { return k.Sub == f.Value.StateFolder.ULID }) {
		w.t.Fatalf("%T writes another folder than it locked", cmd)
	}
	checkRow(w, cmd, keys, TableBeat, r.Beat.Value.Runner.ULID, &loaded.Beat, &r.Beat)
	checkRow(w, cmd, keys, TableRunner, r.Runner.Value.ID.ULID, &loaded.Runner, &r.Runner)
	checkRow(w, cmd, keys, TableJob, r.Job.Value.ID.ULID, &loaded.Job, &r.Job)
	checkRow(w, cmd, keys, TableLease, r.Lease.Value.Context.Lease.ULID, &loaded.Lease, &r.Lease)
	checkRow(w, cmd, keys, TableLease, r.Lease.Value.Context.Lease.ULID, &loaded.Attempt, &r.Attempt)
	if r.Attempt.Dirty && r.Attempt.Value.ID != r.Lease.Value.Context.Attempt {
		w.t.Fatalf("%T writes attempt %v under the lease of another", cmd, r.Attempt.Value.ID)
	}
	checkRow(w, cmd, keys, TableLog, r.Log.Value.Attempt.ULID, &loaded.Log, &r.Log)
	for i := range r.Held {
		checkRow(w, cmd, keys, TableHeld, r.Held[i].Lease.Value.Context.Lease.ULID, &loaded.Held[i].Lease, &r.Held[i].Lease)
	}
}

func checkRow[T any](w *world, cmd Command, keys []Key, table Table, id forge.ULID, loaded, row *Row[T]) {
	w.t.Helper()
	if !row.Dirty {
		if !reflect.DeepEqual(loaded, row) {
			w.t.Fatalf("%T changes a %T that it does not mark:\n%s", cmd, row.Value, cmp.Diff(loaded, row))
		}
		return
	}
	locked := slices.ContainsFunc(keys, func(k Key) bool { return k.Table == table && k.ID == id && k.Lock == Update })
	if !locked {
		w.t.Fatalf("%T writes a %T without its lock", cmd, row.Value)
	}
}

// checkChange: what has ended stays as it is, counters only grow, a wish to cancel is not forgotten.
func (w *world) checkChange(before *tables) {
	w.t.Helper()
	for id, was := range before.Leases {
		is := w.rows.Leases[id]
		if was.State.Ended() && is != was {
			w.t.Fatalf("an ended lease changed:\n%s", cmp.Diff(was, is))
		}
		if is.Renewals < was.Renewals || is.Lived < was.Lived || is.Context != was.Context || is.HardTTL != was.HardTTL {
			w.t.Fatalf("a lease went back:\n%s", cmp.Diff(was, is))
		}
	}
	for id, was := range before.Attempts {
		if is := w.rows.Attempts[id]; was.State.Ended() && is != was || is.State < was.State || is.EventSeq < was.EventSeq {
			w.t.Fatalf("an attempt went back or changed after its end:\n%s", cmp.Diff(was, is))
		}
	}
	for id, was := range before.Jobs {
		w.checkJobChange(&was, w.rows.Jobs[id])
	}
	for id, was := range before.Logs {
		if is := w.rows.Logs[id]; was.Sealed && is != was || is.Next < was.Next {
			w.t.Fatalf("a log went back or changed after its seal:\n%s", cmp.Diff(was, is))
		}
	}
	for id, was := range before.Folders {
		if is := w.rows.Folders[id]; is.Highest < was.Highest {
			w.t.Fatalf("a folder forgot its highest start: %d after %d", is.Highest, was.Highest)
		}
	}
	w.checkOneTransaction(before)
}

// checkJobChange: a job that ended does not change, one that is cancelled is not offered or put back.
func (w *world) checkJobChange(was *Job, is Job) {
	w.t.Helper()
	if was.State.Ended() && is != *was {
		w.t.Fatalf("an ended job changed:\n%s", cmp.Diff(*was, is))
	}
	if was.CancelRequested && !is.CancelRequested {
		w.t.Fatal("a wish to cancel was forgotten")
	}
	again := is.State == forge.JobOffered || is.State == forge.JobReady && was.State != forge.JobWaiting
	if was.State != is.State && again && was.CancelRequested {
		w.t.Fatalf("a cancelled job went from %v to %v", was.State, is.State)
	}
}

// checkOneTransaction: lease, attempt and job end together.
func (w *world) checkOneTransaction(before *tables) {
	w.t.Helper()
	for id, is := range w.rows.Leases {
		was := before.Leases[id]
		if was.State == is.State || !is.State.Ended() {
			continue
		}
		if !w.rows.Attempts[is.Context.Attempt].State.Ended() {
			w.t.Fatalf("a lease ended as %v and its attempt goes on", is.State)
		}
		if job := w.rows.Jobs[is.Context.Job]; job.State == forge.JobActive || job.State == forge.JobOffered {
			w.t.Fatalf("a lease ended as %v and its job is still %v", is.State, job.State)
		}
	}
}

// checkRows: one open lease for a job, slots are kept, lease, attempt and job agree, budgets are not overdrawn.
func (w *world) checkRows() {
	w.t.Helper()
	open := map[forge.JobID][]Lease{}
	held := map[forge.RunnerID]int{}
	for _, l := range w.open(forge.RunnerID{}) {
		open[l.Context.Job] = append(open[l.Context.Job], l)
		held[l.Context.Runner]++
	}
	for runner, n := range held {
		if slots := w.rows.Runners[runner].Slots; n > slots {
			w.t.Fatalf("a runner of %d slots holds %d leases", slots, n)
		}
	}
	for id, job := range w.rows.Jobs {
		w.checkJob(job, open[id])
	}
	for id, l := range w.rows.Leases {
		if a := w.rows.Attempts[l.Context.Attempt]; a.State.Ended() != l.State.Ended() {
			w.t.Fatalf("lease %v is %v, its attempt %v", id, l.State, a.State)
		}
	}
}

func (w *world) checkJob(job Job, open []Lease) {
	w.t.Helper()
	var want forge.JobState
	switch {
	case len(open) > 1:
		w.t.Fatalf("a job has %d open leases", len(open))
	case len(open) == 0:
		if job.Open != (forge.AttemptContext{}) || job.State == forge.JobOffered || job.State == forge.JobActive {
			w.t.Fatalf("a job without a lease is %v, with an open context: %v", job.State, job.Open != (forge.AttemptContext{}))
		}
	default:
		want = map[forge.LeaseState]forge.JobState{forge.LeaseOffered: forge.JobOffered, forge.LeaseAccepted: forge.JobActive}[open[0].State]
		if job.State != want || job.Open != open[0].Context {
			w.t.Fatalf("the lease is %v, the job %v", open[0].State, job.State)
		}
	}
	if job.InfraRetries > uint32(job.Retry.Infra) || job.UserRetries > uint32(job.Retry.Max) {
		w.t.Fatalf("budgets are overdrawn: %+v of %+v", job, *job.Retry)
	}
}
