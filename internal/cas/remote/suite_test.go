package remote_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
)

func TestTheStoreBehindALinkPassesTheSuite(t *testing.T) {
	everyRoad(t, func(t *testing.T, r road) {
		castest.Suite(t, func(t *testing.T) cas.Store {
			w := newWorld(t, r, newShelf())
			w.connect()
			return w.store()
		})
	})
}
