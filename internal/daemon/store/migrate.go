package store

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one step of the schema. Once released it is never edited: a later one changes what it did.
type migration struct {
	version int64 // from 1, without holes
	name    string
	text    string
}

func (m *migration) hash() digest.Digest { return digest.Of([]byte(m.text)) }

// migrations are those of this build, in order. That their names are right is a matter of this build alone.
func migrations() []migration {
	names, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		panic("store: " + err.Error())
	}
	var list []migration
	for i, file := range names {
		text, err := migrationFiles.ReadFile(file)
		if err != nil {
			panic("store: " + err.Error())
		}
		name := path.Base(file)
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil || version != int64(i+1) {
			panic("store: migration " + name + " is not number " + strconv.Itoa(i+1))
		}
		list = append(list, migration{version, name, string(text)})
	}
	return list
}

// migrate brings the schema up to date, each step in a transaction of its own together with its record.
func migrate(ctx context.Context, c *conn, now forge.WallTime, known []migration) error {
	if _, err := c.sql.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_migration (
		version BIGINT NOT NULL PRIMARY KEY, name TEXT NOT NULL, hash BLOB NOT NULL, applied_at BIGINT NOT NULL)`); err != nil {
		return fmt.Errorf("prepare migrations: %w", err)
	}
	applied, err := appliedMigrations(ctx, c)
	if err != nil {
		return fmt.Errorf("read applied migrations: %w", err)
	}
	if err := checkApplied(applied, known); err != nil {
		return err
	}
	for i := range known[len(applied):] {
		m := &known[len(applied)+i]
		if err := m.apply(ctx, c, now); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
	}
	return nil
}

// appliedMigration is the record of one.
type appliedMigration struct {
	version int64
	name    string
	hash    digest.Digest
}

func appliedMigrations(ctx context.Context, c *conn) ([]appliedMigration, error) {
	return list(&View{ctx: ctx, conn: c}, `SELECT version, name, hash FROM schema_migration ORDER BY version`,
		func(m *appliedMigration) []any { return []any{&m.version, &m.name, hash(&m.hash)} })
}

// checkApplied refuses a database that this build cannot know.
func checkApplied(applied []appliedMigration, known []migration) error {
	if len(applied) > len(known) {
		return fmt.Errorf("%w: it has %s, and this program knows of %d migrations; install the version that last ran here, or a later one",
			ErrNewer, applied[len(applied)-1].name, len(known))
	}
	for i, a := range applied {
		if m := &known[i]; a.version != m.version || a.hash != m.hash() {
			return fmt.Errorf("%w: the database has %s as %v, this program has %s as %v", ErrEdited, a.name, a.hash, m.name, m.hash())
		}
	}
	return nil
}

func (m *migration) apply(ctx context.Context, c *conn, now forge.WallTime) (err error) {
	if _, err := c.sql.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = c.sql.ExecContext(background, "ROLLBACK") // the first error is the one that says why
		}
	}()
	if _, err := c.sql.ExecContext(ctx, m.text); err != nil {
		return err
	}
	sum := m.hash()
	if _, err := c.sql.ExecContext(ctx, `INSERT INTO schema_migration (version, name, hash, applied_at) VALUES (?, ?, ?, ?)`,
		m.version, m.name, sum[:], int64(now)); err != nil {
		return err
	}
	_, err = c.sql.ExecContext(ctx, "COMMIT")
	return err
}
