package store

import (
	"errors"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of secrets.
const (
	// MaxSecretNames is how many secrets one project may have at a time.
	MaxSecretNames = 1000
	// MaxSecretVersions is how many versions of a secret are kept. The oldest goes when one more comes.
	MaxSecretVersions = 16
)

// ErrSecrets says that a project has as many secrets as it may.
var ErrSecrets = errors.New("store: the project has as many secrets as it may")

// SecretVersion is one value of a secret, without it.
type SecretVersion struct {
	Version uint32
	Actor   string // who set it
	Created forge.WallTime
}

// SecretEntry is a secret with its versions, the newest first; there is at least one.
type SecretEntry struct {
	Name     string
	Versions []SecretVersion
}

// SealedSecret is an encrypted value, and the digest of the key that opens it. The store can open none.
type SealedSecret struct {
	Key    digest.Digest
	Sealed []byte
}

// SecretRow is one value of a secret as stored.
type SecretRow struct {
	SecretVersion
	SealedSecret
}

const secretColumns = `s.version, s.actor, s.created_at, s.key, s.sealed`

func secretInto(r *SecretRow) []any {
	return []any{num(&r.Version), &r.Actor, num(&r.Created), hash(&r.Key), &r.Sealed}
}

// Secret returns the value of a version, or of the newest where the reference has none. ErrNotFound.
func (v *View) Secret(project forge.ProjectName, ref forge.SecretRef) (SecretRow, error) {
	if ref.Version > 0 {
		return one(v, `SELECT `+secretColumns+` FROM secret_value s WHERE s.project = ? AND s.name = ? AND s.version = ?`,
			secretInto, string(project), ref.Name, toInt(ref.Version))
	}
	return one(v, `SELECT `+secretColumns+` FROM secret_value s WHERE s.project = ? AND s.name = ? ORDER BY s.version DESC LIMIT 1`,
		secretInto, string(project), ref.Name)
}

// Secrets lists the secrets of a project by name, those behind after, at most limit, and the cursor of the next page, which is
// empty after the last.
func (v *View) Secrets(project forge.ProjectName, after string, limit int) ([]SecretEntry, string, error) {
	type row struct {
		name string
		SecretVersion
	}
	rows, err := list(v, `SELECT s.name, s.version, s.actor, s.created_at FROM secret_value s
		WHERE s.project = ? AND s.name IN (SELECT DISTINCT n.name FROM secret_value n WHERE n.project = ? AND n.name > ? ORDER BY n.name LIMIT ?)
		ORDER BY s.name, s.version DESC`,
		func(r *row) []any { return []any{&r.name, num(&r.Version), &r.Actor, num(&r.Created)} },
		string(project), string(project), after, page(limit))
	if err != nil {
		return nil, "", err
	}
	var entries []SecretEntry
	for _, r := range rows {
		if n := len(entries); n == 0 || entries[n-1].Name != r.name {
			entries = append(entries, SecretEntry{Name: r.name})
		}
		last := &entries[len(entries)-1]
		last.Versions = append(last.Versions, r.SecretVersion)
	}
	if int64(len(entries)) < page(limit) {
		return entries, "", nil
	}
	return entries, entries[len(entries)-1].Name, nil
}

// SecretsBesides reports whether there is a value that another key opens. With a zero key: whether there is any.
func (v *View) SecretsBesides(key digest.Digest) (bool, error) {
	var other bool
	_, err := v.find(`SELECT EXISTS (SELECT 1 FROM secret_value WHERE key <> ?)`, []any{key[:]}, flag{&other})
	return other, err
}

// PutSecret stores a new version of a secret, as seal makes it of the version's number, and drops what is older than the
// versions that are kept. ErrSecrets where the project has too many others.
func (tx *Tx) PutSecret(project forge.ProjectName, name, actor string, seal func(version uint32) (SealedSecret, error)) (SecretVersion, error) {
	if err := tx.roomForSecret(project, name); err != nil {
		return SecretVersion{}, err
	}
	made := SecretVersion{Actor: actor, Created: tx.now}
	if err := tx.createProject(project); err != nil {
		return SecretVersion{}, err
	}
	if err := tx.write(`INSERT INTO secret (project, name, last) VALUES (?, ?, 1)
		ON CONFLICT (project, name) DO UPDATE SET last = secret.last + 1`, string(project), name); err != nil {
		return SecretVersion{}, err
	}
	if _, err := tx.find(`SELECT last FROM secret WHERE project = ? AND name = ?`, []any{string(project), name}, num(&made.Version)); err != nil {
		return SecretVersion{}, err
	}
	sealed, err := seal(made.Version)
	if err != nil {
		return SecretVersion{}, err
	}
	if err := tx.write(`INSERT INTO secret_value (project, name, version, key, sealed, actor, created_at) VALUES (?, ?, ?, ?, ?, ?, ?)`,
		string(project), name, toInt(made.Version), sealed.Key[:], sealed.Sealed, actor, toInt(tx.now)); err != nil {
		return SecretVersion{}, err
	}
	_, err = tx.exec(`DELETE FROM secret_value WHERE project = ? AND name = ? AND version <= ?`,
		string(project), name, toInt(made.Version)-MaxSecretVersions)
	return made, err
}

// roomForSecret checks the bound of names for one that is not there yet.
func (tx *Tx) roomForSecret(project forge.ProjectName, name string) error {
	var others int
	if _, err := tx.find(`SELECT COUNT(DISTINCT name) FROM secret_value WHERE project = ? AND name <> ?`,
		[]any{string(project), name}, num(&others)); err != nil {
		return err
	}
	if others >= MaxSecretNames {
		return fmt.Errorf("%w: %d", ErrSecrets, MaxSecretNames)
	}
	return nil
}

// RemoveSecret removes a version of a secret, or all of them where the reference has none. The numbers are not used again.
// ErrNotFound.
func (tx *Tx) RemoveSecret(project forge.ProjectName, ref forge.SecretRef) error {
	n, err := tx.exec(`DELETE FROM secret_value WHERE project = ? AND name = ? AND (version = ? OR ? = 0)`,
		string(project), ref.Name, toInt(ref.Version), toInt(ref.Version))
	if err == nil && n == 0 {
		return ErrNotFound
	}
	return err
}
