package disk_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/forgeyard/forgeyard/internal/disk"
)

func TestAFileIsReplacedWholeAndKeepsTheModeThatWasAskedFor(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, want := range []string{"first", "the second, which is longer", ""} {
		if err := disk.WriteFile(path, []byte(want), 0o640); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o640 {
		t.Errorf("mode %v", info.Mode())
	}
	if !disk.Ours(info) {
		t.Error("what we wrote is not ours")
	}
}

func TestAFileThatCannotBePutInPlaceLeavesTheOldOneAndNothingElse(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "taken") // by a folder that is not empty
	if err := os.MkdirAll(filepath.Join(path, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := disk.WriteFile(path, []byte("new"), 0o600); err == nil {
		t.Fatal("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("left are %v, %v", entries, err)
	}
}

func TestALockHasOneHolderUntilItIsClosed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	open := func() *os.File {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	first, second := open(), open()
	if err := disk.Lock(first); err != nil {
		t.Fatal(err)
	}
	if err := disk.Lock(second); !errors.Is(err, disk.ErrLocked) {
		t.Errorf("the second lock: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := disk.Lock(second); err != nil {
		t.Errorf("after the end of the first: %v", err)
	}
}
