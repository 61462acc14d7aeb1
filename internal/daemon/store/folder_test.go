package store_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
)

// Others must not put a token, a CA or a socket into a daemon's folder.
func TestAFolderThatOthersCanWriteToIsMadePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("access lists say here who may do what")
	}
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder has mode %v, %v", info.Mode(), err)
	}
}

func TestAFolderOrDatabaseOfAnotherUserIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() != 0 {
		t.Skip("only root can give a folder to another user")
	}
	for name, give := range map[string]func(dir string) error{
		"folder": func(dir string) error { return os.Chown(dir, 12345, 12345) },
		"database": func(dir string) error {
			path := filepath.Join(dir, "state.db")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				return err
			}
			return os.Chown(path, 12345, 12345)
		},
	} {
		dir := t.TempDir()
		if err := give(dir); err != nil {
			t.Skip(err)
		}
		if _, err := store.Open(t.Context(), dir, store.Options{}); err == nil || !strings.Contains(err.Error(), "another user") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
