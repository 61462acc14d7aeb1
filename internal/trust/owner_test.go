package trust_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/forgeyard/forgeyard/internal/trust"
)

// In a folder that somebody else has made before, keys are that one's to read and to change.
func TestKeysInAFolderOfAnotherUserAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() != 0 {
		t.Skip("only root can give a folder to another user")
	}
	dir := filepath.Join(t.TempDir(), "trust")
	if _, _, err := trust.OpenCA(dir, named, present); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Skip(err)
	}
	if _, err := trust.LoadCA(dir); !errors.Is(err, trust.ErrPermissions) {
		t.Errorf("a CA: %v", err)
	}
	if _, err := trust.OpenFolder(dir); !errors.Is(err, trust.ErrPermissions) {
		t.Errorf("an agent's keys: %v", err)
	}
}
