package forge_test

import (
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestInstantsCountDurationsOnOneClock(t *testing.T) {
	at := forge.Instant(5 * time.Second)
	if later := at.Add(time.Second); later.Sub(at) != time.Second || at.Sub(later) != -time.Second {
		t.Error("the way there is not the way back")
	}
	if forge.Never <= at.Add(290*365*24*time.Hour) {
		t.Error("Never comes")
	}
}
