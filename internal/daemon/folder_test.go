package daemon

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Whoever has made the token before the daemon did knows it.
func TestATokenOfAnotherUserIsRefused(t *testing.T) {
	if runtime.GOOS == "windows" || os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	dir := t.TempDir()
	if _, err := adminToken(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(filepath.Join(dir, tokenFile), 12345, 12345); err != nil {
		t.Skip(err)
	}
	if _, err := adminToken(dir); err == nil || !strings.Contains(err.Error(), "theirs") {
		t.Errorf("%v", err)
	}
}
