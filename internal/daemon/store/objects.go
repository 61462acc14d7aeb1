package store

import (
	"database/sql"
	"fmt"
	"time"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of the rows that say which project holds which object.
const (
	// MaxHeld is how many objects one call may ask for or hold: more would be one transaction too large.
	MaxHeld = MaxBatchRows
	// TouchAfter is how old a time of touching may grow before it is written anew.
	TouchAfter = 6 * time.Hour
)

// ObjectRow says that a project holds an object. Whether its bytes are there and right, the content store knows.
type ObjectRow struct {
	Project forge.ProjectName
	Ref     digest.Ref
	Added   forge.WallTime
	Touched forge.WallTime // last, give or take TouchAfter
}

// ObjectUse is an output that names an object as its root.
type ObjectUse struct {
	Project forge.ProjectName
	Run     forge.RunID
	Job     forge.JobID
	Attempt forge.AttemptID
	Output  forge.OutputRef
	Live    bool
}

// Held tells of each object, in their order, when the project that holds it has touched it last; zero for those that it
// does not hold. At most MaxHeld.
func (v *View) Held(project forge.ProjectName, refs []digest.Ref) ([]forge.WallTime, error) {
	if err := heldBound(refs); err != nil {
		return nil, err
	}
	at := make(map[digest.Ref]forge.WallTime, len(refs))
	for _, chunk := range padded(refs) {
		args := make([]any, 0, 1+len(chunk))
		args = append(args, string(project))
		for i := range chunk {
			args = append(args, chunk[i].Digest[:])
		}
		err := v.query(`SELECT o.digest, o.bytes, o.touched_at FROM object o
			WHERE o.project = ? AND o.digest IN (`+marksOf("?", len(chunk))+`)`, args, func(rows *sql.Rows) error {
			var ref digest.Ref
			var touched forge.WallTime
			if err := rows.Scan(hash(&ref.Digest), num(&ref.Bytes), num(&touched)); err != nil {
				return err
			}
			at[ref] = touched
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	times := make([]forge.WallTime, len(refs))
	for i, ref := range refs {
		times[i] = at[ref]
	}
	return times, nil
}

func heldBound(refs []digest.Ref) error {
	if len(refs) > MaxHeld {
		return fmt.Errorf("store: %d objects in one call, at most %d", len(refs), MaxHeld)
	}
	return nil
}

// Hold makes a project hold objects. Those that it holds are touched, where the last time is TouchAfter ago. At most
// MaxHeld.
func (tx *Tx) Hold(project forge.ProjectName, refs []digest.Ref) error {
	if err := heldBound(refs); err != nil {
		return err
	}
	now, old := max(1, tx.now), tx.now-forge.WallTime(TouchAfter.Milliseconds())
	for _, chunk := range padded(refs) { // one of them may come twice, which the second time changes nothing
		args := make([]any, 0, 5*len(chunk))
		for i := range chunk {
			args = append(args, string(project), chunk[i].Digest[:], toInt(chunk[i].Bytes), toInt(now), toInt(now))
		}
		if _, err := tx.exec(`INSERT INTO object (project, digest, bytes, added_at, touched_at) VALUES `+marksOf("(?, ?, ?, ?, ?)", len(chunk))+`
			ON CONFLICT (project, digest, bytes) DO UPDATE SET touched_at = excluded.touched_at WHERE object.touched_at < ?`,
			append(args, toInt(old))...); err != nil {
			return err
		}
	}
	return nil
}

// Holders lists the projects that hold an object, by name, at most limit.
func (v *View) Holders(ref digest.Ref, limit int) ([]ObjectRow, error) {
	return list(v, `SELECT o.project, o.digest, o.bytes, o.added_at, o.touched_at FROM object o
		WHERE o.digest = ? AND o.bytes = ? ORDER BY o.project LIMIT ?`, objectInto, ref.Digest[:], toInt(ref.Bytes), page(limit))
}

func objectInto(o *ObjectRow) []any {
	return []any{(*string)(&o.Project), hash(&o.Ref.Digest), num(&o.Ref.Bytes), num(&o.Added), num(&o.Touched)}
}

// ObjectUses lists the outputs whose root is an object, newest attempt first, at most limit.
func (v *View) ObjectUses(ref digest.Ref, limit int) ([]ObjectUse, error) {
	return list(v, `SELECT r.project, r.id, j.id, a.id, u.output, u.tree, u.digest, u.bytes, u.live
		FROM upload u JOIN attempt a ON a.id = u.attempt JOIN job j ON j.id = a.job JOIN run r ON r.id = j.run
		WHERE u.digest = ? AND u.bytes = ? ORDER BY a.id DESC, u.output LIMIT ?`,
		useInto, ref.Digest[:], toInt(ref.Bytes), page(limit))
}

func useInto(u *ObjectUse) []any {
	return []any{
		(*string)(&u.Project), id(&u.Run.ULID), id(&u.Job.ULID), id(&u.Attempt.ULID), num(&u.Output.Output),
		flag{&u.Output.Tree},
		hash(&u.Output.Ref.Digest), num(&u.Output.Ref.Bytes),
		flag{&u.Live},
	}
}

// ObjectCount counts the objects that projects hold: rows, so one that two projects hold counts twice.
func (v *View) ObjectCount() (uint64, error) {
	var n uint64
	_, err := v.find(`SELECT COUNT(*) FROM object`, nil, num(&n))
	return n, err
}
