package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// Names in /dev/shm are for everybody to read, and the mark is what processes are killed by.
func TestTheNameOfASecretsFolderDoesNotTellTheMark(t *testing.T) {
	e, err := New(Config{State: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	order := executor.Order{Context: forge.AttemptContext{Attempt: ident.New[forge.AttemptID]()}}
	order.Spec.Secrets = []forge.SecretUse{{File: "key"}}
	dir := e.secretsDir(&order)
	random, _, _ := strings.Cut(e.mark, "-")
	if !strings.HasPrefix(dir, memoryDir+"/"+secretsPrefix) || strings.Contains(dir, random) {
		t.Errorf("%s for the mark %s", dir, e.mark)
	}
}

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
	secrets := []secret{{File: "a", Value: []byte("1")}, {File: "b", Value: []byte("2")}}
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
