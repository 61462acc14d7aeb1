package launch

import (
	"slices"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
)

// namespaceLevels are given wherever a sandbox can be built at all.
var namespaceLevels = []sandbox.Level{
	sandbox.LevelUserNamespace, sandbox.LevelPIDNamespace, sandbox.LevelMountNamespace, sandbox.LevelNetworkNamespace,
	sandbox.LevelIPCNamespace, sandbox.LevelUTSNamespace,
}

// levels finds out which walls this machine gives, once a sandbox was built. hidden says whether its /proc hides.
func (l *launcher) levels(hidden bool) sandbox.Report {
	r := sandbox.Report{Levels: slices.Clone(namespaceLevels)}
	add := func(level sandbox.Level, given bool, why, mend string) {
		switch {
		case given && !r.Has(level):
			r.Levels = append(r.Levels, level)
		case !given:
			r.Missing = append(r.Missing, sandbox.Missing{Level: level, Why: why, Mend: mend})
		}
	}
	add(sandbox.LevelMappedUIDs, !l.cfg.Rootless, "the agent does not run as root, so that sandboxes have its own id", "run the agent as root")
	add(sandbox.LevelHiddenProc, hidden, "this kernel cannot hide processes in one /proc alone", "use Linux 5.8 or later")
	for _, f := range confine.Probe() {
		level := sandbox.Level(f.Name)
		if level == sandbox.LevelSeccomp || level == sandbox.LevelLandlock || level == sandbox.LevelLandlockScopes {
			add(level, f.Have, f.Why, f.Mend)
		}
	}
	for _, g := range []struct {
		level sandbox.Level
		grant cgroup.Grant
	}{
		{sandbox.LevelCgroupMemory, l.groups.Memory}, {sandbox.LevelCgroupCPU, l.groups.CPU}, {sandbox.LevelCgroupPids, l.groups.Pids},
	} {
		add(g.level, g.grant.Given, g.grant.Why, g.grant.Mend)
	}
	return r
}
