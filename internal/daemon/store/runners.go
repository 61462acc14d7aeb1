package store

import (
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

const runnerColumns = `r.id, r.name, r.pool, r.trust, r.labels, r.slots, r.disabled, r.revoked, r.draining, r.last_reject,
	r.last_reject_job, r.last_reject_at, r.reserved, r.summary, r.health, r.capabilities, r.capability_id, r.capabilities_at,
	r.created_at`

const runnerSelect = `SELECT ` + runnerColumns + `, b.seen_at, ` + sessionColumns + `
	FROM runner r JOIN session s ON s.runner = r.id JOIN beat b ON b.runner = r.id `

func runnerInto(r *Runner) []any {
	return append([]any{
		id(&r.ID.ULID), &r.Name, &r.Pool, num(&r.Trust), doc(&r.Labels), num(&r.Slots),
		flag{&r.Disabled},
		flag{&r.Revoked},
		flag{&r.Draining},
		num(&r.LastReject), id(&r.LastRejectJob.ULID), num(&r.LastRejectAt), doc(&r.Reserved), doc(&r.Summary),
		doc(&r.Health), doc(&r.Capabilities), hash(&r.CapabilityID), num(&r.CapabilitiesAt), num(&r.Created), num(&r.Seen),
	}, sessionInto(&r.Session)...)
}

// Runner returns a runner, or ErrNotFound. One that was deleted is not found.
func (v *View) Runner(runner forge.RunnerID) (Runner, error) {
	return v.runner(`WHERE r.id = ? AND r.deleted_at = 0`, runner.ULID[:])
}

// RunnerByName returns a runner that is not deleted, or ErrNotFound.
func (v *View) RunnerByName(name string) (Runner, error) {
	return v.runner(`WHERE r.name = ? AND r.deleted_at = 0`, name)
}

func (v *View) runner(where string, args ...any) (Runner, error) {
	r, err := one(v, runnerSelect+where, runnerInto, args...)
	r.Version = r.Session.Version
	return r, err
}

// Runners lists the runners that are not deleted by id, those after the given one, at most limit.
func (v *View) Runners(after forge.RunnerID, limit int) ([]Runner, error) {
	runners, err := list(v, runnerSelect+`WHERE r.id > ? AND r.deleted_at = 0 ORDER BY r.id LIMIT ?`, runnerInto, after.ULID[:], page(limit))
	for i := range runners {
		runners[i].Version = runners[i].Session.Version
	}
	return runners, err
}

// OpenLeases lists the open leases of one runner or, with a zero id, of all, in the order of their ids.
func (v *View) OpenLeases(runner forge.RunnerID) ([]OpenLease, error) {
	where, args := "", []any(nil)
	if !runner.IsZero() {
		where, args = " AND l.runner = ?", []any{runner.ULID[:]}
	}
	return list(v, `SELECT `+leaseColumns+`, j.key, u.id, u.project FROM lease l JOIN job j ON j.id = l.job
		JOIN run u ON u.id = j.run WHERE l.state <= 2`+where+` ORDER BY l.id`, func(o *OpenLease) []any {
		return append(leaseInto(&o.Lease), &o.Job, id(&o.Run.ULID), &o.Project)
	}, args...)
}

// CreateRunner makes a runner with its empty session. ErrExists where the name or id is taken.
func (tx *Tx) CreateRunner(n NewRunner) error {
	r := forge.Runner{ID: n.ID, Name: n.Name, Pool: n.Pool, Trust: n.Trust, Labels: n.Labels, Reserved: n.Reserved}
	if err := r.Validate(); err != nil {
		return fmt.Errorf("create runner: %w", err)
	}
	if err := checkSlots(n.Slots); err != nil {
		return err
	}
	if err := tx.nameFree(n.Name, n.ID); err != nil {
		return err
	}
	if err := tx.write(`INSERT INTO runner (id, name, pool, trust, labels, slots, disabled, revoked, draining, last_reject,
		last_reject_job, last_reject_at, reserved, summary, health, capabilities, capability_id, capabilities_at, key, created_at,
		deleted_at) VALUES (?, ?, ?, ?, ?, ?, 0, 0, 0, 0, ?, 0, ?, '', '', '', ?, 0, ?, ?, 0)`, n.ID.ULID[:], n.Name, n.Pool,
		toInt(n.Trust), toText(n.Labels), toInt(n.Slots), noID, toText(n.Reserved), noDigest, noDigest, toInt(tx.now)); err != nil {
		return err
	}
	tx.changes.runner(n.ID)
	if err := tx.write(`INSERT INTO session (runner, session, state_folder, boot, start_counter, transport_seq, version,
		capability_digest) VALUES (?, ?, ?, ?, 0, 0, '', ?)`, n.ID.ULID[:], noID, noID, noID, noDigest); err != nil {
		return err
	}
	return tx.write(`INSERT INTO beat (runner, count, seen_at) VALUES (?, 0, 0)`, n.ID.ULID[:])
}

func checkSlots(n int) error {
	if n < 1 || n > int(forge.MaxSlots) {
		return fmt.Errorf("%w: %d slots, want 1 to %d", forge.ErrInvalid, n, forge.MaxSlots)
	}
	return nil
}

// nameFree refuses a name that a runner other than this one has. It asks before the index would complain, so that the
// transaction stays usable.
func (tx *Tx) nameFree(name string, own forge.RunnerID) error {
	other, err := tx.RunnerByName(name)
	switch {
	case isNotFound(err):
		return nil
	case err == nil && other.ID != own:
		return fmt.Errorf("%w: a runner named %q", ErrExists, name)
	}
	return err
}

// ChangeRunner changes what an administrator may change. ErrNotFound, or ErrExists where the name is taken.
func (tx *Tx) ChangeRunner(runner forge.RunnerID, c RunnerChange) error {
	r, err := tx.Runner(runner)
	if err != nil {
		return fmt.Errorf("change runner %v: %w", runner, err)
	}
	set(&r.Name, c.Name)
	set(&r.Pool, c.Pool)
	set(&r.Trust, c.Trust)
	set(&r.Labels, c.Labels)
	set(&r.Slots, c.Slots)
	set(&r.Reserved, c.Reserved)
	if err := errors.Join(r.Validate(), checkSlots(r.Slots)); err != nil {
		return fmt.Errorf("change runner %v: %w", runner, err)
	}
	if err := tx.nameFree(r.Name, runner); err != nil {
		return err
	}
	tx.changes.runner(runner)
	return tx.write(`UPDATE runner SET name = ?, pool = ?, trust = ?, labels = ?, slots = ?, reserved = ? WHERE id = ?`,
		r.Name, r.Pool, toInt(r.Trust), toText(r.Labels), toInt(r.Slots), toText(r.Reserved), runner.ULID[:])
}

func set[T any](field *T, to *T) {
	if to != nil {
		*field = *to
	}
}

// DeleteRunner takes a runner out of every listing, frees its name, takes its key away, revokes it for good and ends its
// session, so that whatever still speaks for it is fenced. Its row stays for the attempts that refer to it. ErrInUse while
// it has an open lease; ErrNotFound.
func (tx *Tx) DeleteRunner(runner forge.RunnerID) error {
	if _, err := tx.Runner(runner); err != nil {
		return fmt.Errorf("delete runner %v: %w", runner, err)
	}
	open, err := tx.OpenLeases(runner)
	if err != nil {
		return err
	}
	if len(open) > 0 {
		return fmt.Errorf("%w: runner %v has %d open leases; drain it or disable it first", ErrInUse, runner, len(open))
	}
	tx.changes.runner(runner)
	if err := tx.write(`UPDATE session SET session = ? WHERE runner = ?`, noID, runner.ULID[:]); err != nil {
		return err
	}
	return tx.write(`UPDATE runner SET revoked = 1, key = ?, deleted_at = ? WHERE id = ?`, noDigest, max(1, toInt(tx.now)), runner.ULID[:])
}

// SetCapabilities keeps the latest snapshot of a runner. ErrNotFound.
func (tx *Tx) SetCapabilities(runner forge.RunnerID, c forge.Capabilities, d digest.Digest) error {
	tx.changes.runner(runner)
	return tx.update(runner, `UPDATE runner SET capabilities = ?, capability_id = ?, capabilities_at = ? WHERE id = ?`,
		toText(c), d[:], toInt(tx.now), runner.ULID[:])
}

// SetSummary keeps what the latest heartbeat said. Beats count for authority in their own rule; this is for people and for
// the scheduler. ErrNotFound.
func (tx *Tx) SetSummary(runner forge.RunnerID, s forge.ResourceSummary) error {
	return tx.update(runner, `UPDATE runner SET summary = ? WHERE id = ?`, toText(s), runner.ULID[:])
}

// SetHealth keeps the latest health report. ErrNotFound.
func (tx *Tx) SetHealth(runner forge.RunnerID, h forge.Health) error {
	tx.changes.runner(runner)
	return tx.update(runner, `UPDATE runner SET health = ? WHERE id = ?`, toText(h), runner.ULID[:])
}

// update runs a statement about a runner that may not be there.
func (tx *Tx) update(runner forge.RunnerID, text string, args ...any) error {
	n, err := tx.exec(text, args...)
	if err == nil && n == 0 {
		return fmt.Errorf("%w: runner %v", ErrNotFound, runner)
	}
	return err
}
