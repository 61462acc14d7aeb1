package castest_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/digest"
)

func TestTheStoreInMemoryPassesTheSuite(t *testing.T) {
	castest.Suite(t, func(*testing.T) cas.Store { return castest.NewMemory() })
}

func all(digest.Ref) bool { return true }

func TestAViewOfEverythingPassesTheSuite(t *testing.T) {
	castest.Suite(t, func(*testing.T) cas.Store { return cas.Only(all, castest.NewMemory()) })
}

func TestTieredStoresPassTheSuite(t *testing.T) {
	castest.Suite(t, func(*testing.T) cas.Store { return cas.Tiered(castest.NewMemory(), castest.NewMemory()) })
}
