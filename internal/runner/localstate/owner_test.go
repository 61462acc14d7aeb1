package localstate

import (
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/forgeyard/forgeyard/internal/disk"
)

// Whoever owns a folder puts into it what he likes, at any time: the marks and records by which an agent kills, for one.
func TestAFolderOfAnotherUserIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() != 0 {
		t.Skip("only root can give a folder to another user")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 12345, 12345); err != nil {
		t.Skip(err)
	}
	f, err := Open(dir)
	if !errors.Is(err, disk.ErrOwner) {
		t.Fatalf("%v, %v", f, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("left: %v, %v", entries, err)
	}
}
