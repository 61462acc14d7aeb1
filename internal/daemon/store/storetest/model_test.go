package storetest_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/daemon/store/storetest"
)

func TestTheModelPassesTheSuite(t *testing.T) {
	storetest.Suite(t, func(*testing.T) storetest.Rules { return storetest.NewModel() })
}
