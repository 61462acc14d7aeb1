package store_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/store"
	"github.com/forgeyard/forgeyard/internal/daemon/store/storetest"
)

func open(t *testing.T) *store.Store {
	t.Helper()
	return openAt(t, t.TempDir())
}

func openAt(t *testing.T, dir string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), dir, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func TestTheStorePassesTheSuite(t *testing.T) {
	storetest.Suite(t, func(t *testing.T) storetest.Rules { return storetest.Of(open(t)) })
}
