//go:build linux && !forgeyard_unsafe

package attack_test

import (
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

// TestEveryAttackIsDenied runs each attack against the full sandbox, as root with ids of its own and with a single id.
// Threats S11, S12, S13, S14, S30.
func TestEveryAttackIsDenied(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode.name, func(t *testing.T) {
			y := open(t, mode.rootless)
			report := y.launcher.Report()
			for _, a := range attack.All() {
				t.Run(a.Name, func(t *testing.T) {
					if why := lacks(a, &report); why != "" {
						t.Skip(why)
					}
					for range tries(a) {
						y.denies(t, a)
					}
				})
			}
		})
	}
}

// denies runs an attack and wants it denied, and nothing of its sandbox left.
func (y *yard) denies(t *testing.T, a attack.Attack) {
	t.Helper()
	r := y.run(t, a)
	v, err := r.verdict(a)
	if err != nil {
		t.Fatal(err)
	}
	if v.Worked {
		t.Fatalf("the attack %v", v)
	}
	t.Log(v)
	if r.changed {
		t.Error("the input that other attempts read too has changed")
	}
	if len(r.leftOver) > 0 || r.open {
		t.Errorf("of the sandbox are left: processes %v, output held: %v", r.leftOver, r.open)
	}
}

// tries is how often an attack is run: one that is a race has several.
func tries(a attack.Attack) int {
	if a.Setup == attack.LinkRace {
		return 12
	}
	return 1
}

// lacks says which wall this machine does not give that all defences against an attack need.
func lacks(a attack.Attack, report *sandbox.Report) string {
	levels := map[attack.Defence]sandbox.Level{
		attack.Seccomp: sandbox.LevelSeccomp, attack.Landlock: sandbox.LevelLandlock, attack.Scopes: sandbox.LevelLandlockScopes,
		attack.PidsLimit: sandbox.LevelCgroupPids, attack.MemoryLimit: sandbox.LevelCgroupMemory,
		attack.HiddenProc: sandbox.LevelHiddenProc, attack.NetworkNone: sandbox.LevelNetworkNamespace,
	}
	why := ""
	for _, d := range a.Defences {
		level, ok := levels[d]
		if !ok || report.Has(level) {
			return ""
		}
		why = "this machine does not give " + string(level)
	}
	return why
}
