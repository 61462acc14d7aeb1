//go:build !linux && !windows

package clock

import (
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// start stands in for the start of the machine: this system is built for, and not yet run on.
var start = time.Now()

func bootNow() forge.Instant { return forge.Instant(time.Since(start)) + 1 }
