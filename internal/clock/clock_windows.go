package clock

import (
	"golang.org/x/sys/windows"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// GetTickCount64 counts milliseconds since the start of the system, sleep included.
func bootNow() forge.Instant {
	return forge.Instant(windows.DurationSinceBoot())
}
