package disk_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// opened is a store in a folder of its own.
func opened(t testing.TB, o disk.Options) *disk.Store {
	t.Helper()
	return openedAt(t, castest.Folder(t), o)
}

func openedAt(t testing.TB, dir string, o disk.Options) *disk.Store {
	t.Helper()
	s, err := disk.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestTheStorePassesTheSuiteInEveryMode(t *testing.T) {
	for name, options := range map[string]disk.Options{
		"Plain":   {},
		"Durable": {Durable: true},
		"Cache":   {MaxBytes: forge.GiB, MinFree: forge.MiB, Evict: true},
	} {
		t.Run(name, func(t *testing.T) {
			castest.Suite(t, func(t *testing.T) cas.Store { return opened(t, options) })
		})
	}
}

func TestAStoreBeforeAnotherPassesTheSuite(t *testing.T) {
	castest.Suite(t, func(t *testing.T) cas.Store {
		return cas.Tiered(opened(t, disk.Options{}), castest.NewMemory())
	})
}
