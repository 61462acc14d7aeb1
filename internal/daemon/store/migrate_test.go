package store

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// migrated brings a database through migrations, as a build that knows these would.
func migrated(t *testing.T, path string, known []migration) error {
	t.Helper()
	c, err := connect(t.Context(), path, writing)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.close(); err != nil {
			t.Error(err)
		}
	}()
	return migrate(t.Context(), c, 1, known)
}

func TestMigrations(t *testing.T) {
	one := migration{1, "0001_one.sql", `CREATE TABLE one (n BIGINT NOT NULL); INSERT INTO one (n) VALUES (1);`}
	two := migration{2, "0002_two.sql", `UPDATE one SET n = n + 1;`}
	broken := migration{3, "0003_broken.sql", `UPDATE one SET n = 100; UPDATE nothing SET n = 1;`}
	edited := one
	edited.text += " "
	path := filepath.Join(t.TempDir(), "m.db")
	for _, step := range []struct {
		what  string
		known []migration
		want  error
		says  string
	}{
		{"a new database", []migration{one}, nil, ""},
		{"the same build again", []migration{one}, nil, ""},
		{"a later build", []migration{one, two}, nil, ""},
		{"the older build after it", []migration{one}, ErrNewer, "0002_two.sql"},
		{"a build in which an applied migration was edited", []migration{edited, two}, ErrEdited, "0001_one.sql"},
		{"a migration that fails", []migration{one, two, broken}, nil, "0003_broken.sql"},
		{"the build before it", []migration{one, two}, nil, ""},
	} {
		err := migrated(t, path, step.known)
		if (err == nil) != (step.says == "") || step.want != nil && !errors.Is(err, step.want) || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("%s: %v", step.what, err)
		}
	}
	c, err := connect(t.Context(), path, reading)
	if err != nil {
		t.Fatal(err)
	}
	var n int64
	if _, err := (&View{ctx: t.Context(), conn: c}).find(`SELECT n FROM one`, nil, num(&n)); err != nil || n != 2 {
		t.Errorf("after all of it n = %d, %v; want 2: each applied once, the failed one not at all", n, err)
	}
	if err := c.close(); err != nil {
		t.Error(err)
	}
}

// TestRunsOfTheFirstSchemaAreRead: a database of the build before the title of runs keeps its rows.
func TestRunsOfTheFirstSchemaAreRead(t *testing.T) {
	dir := t.TempDir()
	first := migrations()[0]
	first.text += `
		INSERT INTO project (name, created_at) VALUES ('p', 1);
		INSERT INTO run (id, seq, project, state, trust, idem, actor, cancel_requested, cancel_actor, created_at, started_at, ended_at,
			unsettled) VALUES (x'01020304050607080910111213141516', 1, 'p', 3, 1, 'key', 'ada', 0, '', 1, 1, 2, 0);`
	path := filepath.Join(dir, databaseFile)
	c, err := connect(t.Context(), path, writing)
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate(t.Context(), c, 1, []migration{first}); err != nil {
		t.Fatal(err)
	}
	original := migrations()[0].hash()
	if _, err := c.sql.ExecContext(t.Context(), `UPDATE schema_migration SET hash = ?`, original[:]); err != nil {
		t.Fatal(err)
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close() }()
	err = s.View(t.Context(), func(v *View) error {
		runs, _, err := v.Runs(RunFilter{})
		if len(runs) != 1 || runs[0].Name != "" || runs[0].Key != "key" || runs[0].Actor != "ada" {
			t.Errorf("read %+v", runs)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestADatabaseOfANewerBuildIsRefusedInWords(t *testing.T) {
	dir := t.TempDir()
	future := append(migrations(), migration{int64(len(migrations()) + 1), "9999_future.sql", `CREATE TABLE future (n BIGINT)`})
	if err := migrated(t, filepath.Join(dir, databaseFile), future); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), dir, Options{})
	if !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "9999_future.sql") || !strings.Contains(err.Error(), "install") {
		t.Errorf("opened by this build: %v", err)
	}
}

func TestAFolderIsOpenOnceAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made", "by open")
	s, err := Open(t.Context(), dir, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, Options{}); !errors.Is(err, ErrLocked) {
		t.Errorf("opened twice: %v", err)
	}
	if err := s.Update(t.Context(), ClassRest, event("something")); err != nil {
		t.Error(err)
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, f.Name())
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s may be read by others: %v", f.Name(), info.Mode())
		}
	}
	if want := []string{"lock", "state.db", "state.db-shm", "state.db-wal"}; !slices.Equal(names, want) {
		t.Errorf("files %q, want %q", names, want)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	if s, err = Open(t.Context(), dir, Options{}); err != nil {
		t.Fatalf("opened after Close: %v", err)
	}
	if got := kinds(t, s); len(got) != 1 {
		t.Errorf("stored: %q", got)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
