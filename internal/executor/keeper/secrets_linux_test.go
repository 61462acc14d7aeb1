package keeper

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

const memoryDir = "/dev/shm"

// Whoever made the folder, or a link of its name, before would read the secrets, or choose where they are written.
func TestSecretsGoIntoANewFolderOnly(t *testing.T) {
	base, err := os.MkdirTemp(memoryDir, "forgeyard-test")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	elsewhere := filepath.Join(base, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o777); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(base, "link")
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Fatal(err)
	}
	secrets := []Secret{{File: "a", Value: []byte("1")}, {File: "b", Value: []byte("2")}}
	for _, dir := range []string{elsewhere, link} {
		if _, err := place(dir, secrets); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	fresh := filepath.Join(base, "fresh")
	if _, err := place(fresh, secrets); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(fresh, "b")); err != nil || string(text) != "2" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := place("", secrets); !errors.Is(err, errNotAnnounced) {
		t.Error(err)
	}
}
