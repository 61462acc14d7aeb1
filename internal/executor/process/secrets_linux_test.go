package process

import (
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
