package store

import (
	"database/sql"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// work is the working set of one rule, with what the store keeps beside the rows of authority.
type work struct {
	rows    authority.Rows
	run     forge.RunID // of the job
	stamps  stamps      // of the job
	marks   marks       // of the attempt
	job     forge.JobState
	attempt forge.AttemptState // as loaded
}

// load carries out the statements that a rule asks for, in their order. Leases that a heartbeat names are one statement.
func (tx *Tx) load(w *work, keys []authority.Key, cmd authority.Command) error {
	for i := 0; i < len(keys); i++ {
		if keys[i].Table != authority.TableHeld {
			if err := tx.loadOne(w, keys[i], cmd); err != nil {
				return err
			}
			continue
		}
		last := i
		for last < len(keys) && keys[last].Table == authority.TableHeld {
			last++
		}
		if err := tx.loadHeld(&w.rows, keys[i:last]); err != nil {
			return err
		}
		i = last - 1
	}
	return nil
}

func (tx *Tx) loadOne(w *work, key authority.Key, cmd authority.Command) (err error) {
	r := &w.rows
	args := []any{key.ID[:]}
	switch key.Table {
	case authority.TableSession:
		r.Session.Found, err = tx.find(`SELECT `+sessionColumns+` FROM session s WHERE s.runner = ?`, args, sessionInto(&r.Session.Value)...)
	case authority.TableFolder:
		r.Folder.Found, err = tx.loadFolder(&r.Folder.Value, key)
	case authority.TableBeat:
		b := &r.Beat.Value
		r.Beat.Found, err = tx.find(`SELECT b.runner, b.count FROM beat b WHERE b.runner = ?`, args, id(&b.Runner.ULID), num(&b.Count))
	case authority.TableRunner:
		r.Runner.Found, err = tx.find(`SELECT `+rulerColumns+` FROM runner r WHERE r.id = ?`, args, rulerInto(&r.Runner.Value)...)
	case authority.TableOpenLeases:
		_, err = tx.find(`SELECT COUNT(*) FROM lease WHERE runner = ? AND state <= 2`, args, num(&r.OpenLeases))
	case authority.TableJob:
		err = tx.loadJob(w, args)
	case authority.TableLease:
		err = tx.loadLease(w, args)
	case authority.TableLog:
		r.Log.Found, err = tx.find(`SELECT `+logColumns+` FROM log g WHERE g.attempt = ?`, args, logInto(&r.Log.Value)...)
	case authority.TableRefs:
		r.Refs, err = tx.loadRefs(key.ID, cmd)
	case authority.TableHeld: // see load
	}
	return err
}

func (tx *Tx) loadFolder(f *authority.Folder, key authority.Key) (bool, error) {
	return tx.find(`SELECT f.runner, f.state_folder, f.highest FROM folder f WHERE f.runner = ? AND f.state_folder = ?`,
		[]any{key.ID[:], key.Sub[:]}, id(&f.Runner.ULID), id(&f.StateFolder.ULID), num(&f.Highest))
}

func (tx *Tx) loadJob(w *work, args []any) (err error) {
	j := &w.rows.Job
	into := append(append(jobInto(&j.Value), id(&w.run.ULID)), w.stamps.into()...)
	j.Found, err = tx.find(`SELECT `+jobColumns+`, j.run, `+stampColumns+` FROM job j WHERE j.id = ?`, args, into...)
	if !j.Found {
		j.Value = authority.Job{}
	}
	fillOpen(&j.Value)
	w.job = j.Value.State
	return err
}

func (tx *Tx) loadLease(w *work, args []any) (err error) {
	r := &w.rows
	into := append(append(leaseInto(&r.Lease.Value), attemptInto(&r.Attempt.Value)...), w.marks.into()...)
	r.Lease.Found, err = tx.find(`SELECT `+leaseColumns+`, `+attemptColumns+`, `+markColumns+`
		FROM lease l JOIN attempt a ON a.id = l.attempt WHERE l.id = ?`, args, into...)
	r.Attempt.Found = r.Lease.Found
	w.attempt = r.Attempt.Value.State
	return err
}

// heldSizes are the numbers of leases for which there is a statement; a shorter list repeats its last one.
var heldSizes = []int{1, 4, 16, 64, 256}

// padded lengthens a list to the next of heldSizes, and splits one that is longer than the largest.
func padded[T any](list []T) (chunks [][]T) {
	largest := heldSizes[len(heldSizes)-1]
	for chunk := range slices.Chunk(list, largest) {
		i, _ := slices.BinarySearch(heldSizes, len(chunk))
		full := slices.Clone(chunk)
		for len(full) < heldSizes[i] {
			full = append(full, chunk[len(chunk)-1])
		}
		chunks = append(chunks, full)
	}
	return chunks
}

// marksOf is n times a list of question marks, with commas between.
func marksOf(one string, n int) string { return strings.TrimSuffix(strings.Repeat(one+", ", n), ", ") }

func (tx *Tx) loadHeld(r *authority.Rows, keys []authority.Key) error {
	at := make(map[forge.ULID]authority.HeldLease, len(keys))
	for _, chunk := range padded(keys) {
		args := make([]any, len(chunk))
		for i := range chunk {
			args[i] = chunk[i].ID[:]
		}
		err := tx.query(`SELECT `+leaseColumns+`, j.cancel_requested FROM lease l JOIN job j ON j.id = l.job
			WHERE l.id IN (`+marksOf("?", len(chunk))+`)`, args, func(rows *sql.Rows) error {
			var h authority.HeldLease
			h.Lease.Found = true
			if err := rows.Scan(append(leaseInto(&h.Lease.Value), flag{&h.Cancel})...); err != nil {
				return err
			}
			at[h.Lease.Value.Context.Lease.ULID] = h
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, key := range keys {
		r.Held = append(r.Held, at[key.ID])
	}
	return nil
}

// loadRefs tells what is stored of the objects that a completion names.
func (tx *Tx) loadRefs(attempt forge.ULID, cmd authority.Command) ([]authority.RefState, error) {
	named, ok := cmd.(interface{ Refs() []forge.OutputRef })
	if !ok {
		return nil, nil
	}
	var states []authority.RefState
	for _, ref := range named.Refs() {
		var s authority.RefState
		known, err := tx.find(`SELECT u.live FROM upload u
			WHERE u.attempt = ? AND u.output = ? AND u.tree = ? AND u.digest = ? AND u.bytes = ?`,
			append([]any{attempt[:]}, refFrom(&ref)...), flag{&s.Live})
		if err != nil {
			return nil, err
		}
		s.Known = known
		states = append(states, s)
	}
	return states, nil
}

func refFrom(ref *forge.OutputRef) []any {
	return []any{toInt(ref.Output), toFlag(ref.Tree), ref.Ref.Digest[:], toInt(ref.Ref.Bytes)}
}
