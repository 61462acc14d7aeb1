//go:build linux && !forgeyard_unsafe

package attack_test

import (
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

// switches are none: this build always has every defence.
func switches([]attack.Defence) sandbox.Switches { return sandbox.Switches{} }
