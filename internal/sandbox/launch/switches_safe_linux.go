//go:build !forgeyard_unsafe

package launch

import (
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

func viewSwitches(sandbox.Switches) view.Switches       { return view.Switches{} }
func confineSwitches(sandbox.Switches) confine.Switches { return confine.Switches{} }
