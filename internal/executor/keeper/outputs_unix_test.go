//go:build unix

package keeper

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/executor"
)

func outputsOf(t *testing.T) (folder, outputs string) {
	t.Helper()
	folder = t.TempDir()
	if err := MakeFolders(folder, 1); err != nil {
		t.Fatal(err)
	}
	return folder, executor.OutputDir(folder, 0)
}

func TestFoldersAndLinksCountAsOutputs(t *testing.T) {
	folder, outputs := outputsOf(t)
	for i := range 30 {
		if err := os.MkdirAll(filepath.Join(outputs, fmt.Sprint(i), "inner"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("/", filepath.Join(outputs, fmt.Sprint("link", i))); err != nil {
			t.Fatal(err)
		}
	}
	if size, err := outputBytes(folder, 0, 1000); size != 90 || err != nil {
		t.Errorf("%d, %v; want 90", size, err)
	}
	if size, err := outputBytes(folder, 0, 20); size < 21 || size > 22 || err != nil { // one more where an inner folder is the last
		t.Errorf("%d, %v; want 21, at which the walk ends", size, err)
	}
}

func TestOutputsThatAreTooDeepAreAnError(t *testing.T) {
	folder, outputs := outputsOf(t)
	if err := os.MkdirAll(outputs+strings.Repeat("/d", maxOutputDepth+1), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := outputBytes(folder, 0, 1000); err == nil {
		t.Error("they are measured")
	}
}

func TestAPipeInPlaceOfAFolderHoldsNobodyUp(t *testing.T) {
	folder, outputs := outputsOf(t)
	if err := os.Remove(outputs); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(outputs, 0o644); err != nil {
		t.Fatal(err)
	}
	if size, err := outputBytes(folder, 0, 1000); size != 0 || err != nil {
		t.Errorf("%d, %v", size, err)
	}
}
