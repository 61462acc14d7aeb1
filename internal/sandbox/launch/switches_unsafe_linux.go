//go:build forgeyard_unsafe

package launch

import (
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

func viewSwitches(s sandbox.Switches) view.Switches { return view.Switches{Without: s.Without} }

func confineSwitches(s sandbox.Switches) confine.Switches {
	return confine.Switches{Without: s.Without}
}
