package store

import "github.com/forgeyard/forgeyard/internal/forge"

// IDs says of what ids are looked up.
type IDs uint8

// What has ids that people name. Runners that were deleted are left out.
const (
	RunIDs     IDs = 1
	JobIDs     IDs = 2
	AttemptIDs IDs = 3
	RunnerIDs  IDs = 4
	AccessIDs  IDs = 5
)

var between = map[IDs]string{
	RunIDs:     `SELECT id FROM run WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?`,
	JobIDs:     `SELECT id FROM job WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?`,
	AttemptIDs: `SELECT id FROM attempt WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?`,
	RunnerIDs:  `SELECT id FROM runner WHERE id BETWEEN ? AND ? AND deleted_at = 0 ORDER BY id LIMIT ?`,
	AccessIDs:  `SELECT id FROM access_token WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?`,
}

// Between lists the ids of a kind from low to high, both included, at most limit: those that begin with what a person
// typed of one.
func (v *View) Between(kind IDs, low, high forge.ULID, limit int) ([]forge.ULID, error) {
	text, known := between[kind]
	if !known {
		return nil, ErrNotFound
	}
	return list(v, text, func(u *forge.ULID) []any { return []any{id(u)} }, low[:], high[:], page(limit))
}
