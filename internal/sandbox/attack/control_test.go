//go:build linux && forgeyard_unsafe

package attack_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

func switches(without []attack.Defence) sandbox.Switches {
	var s sandbox.Switches
	for _, d := range without {
		s.Without = append(s.Without, string(d))
	}
	return s
}

// looseLimits makes this process's own limits as wide as they can be, so that only a sandbox's stops an attack.
func looseLimits(t *testing.T) {
	t.Helper()
	for what, wanted := range map[int]uint64{syscall.RLIMIT_NOFILE: 600_000, syscall.RLIMIT_CORE: 1 << 30} {
		if syscall.Setrlimit(what, &syscall.Rlimit{Cur: wanted, Max: wanted}) == nil {
			continue // this user may have more than it has
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(what, &now); err != nil {
			t.Fatal(err)
		}
		now.Cur = now.Max
		if err := syscall.Setrlimit(what, &now); err != nil {
			t.Fatal(err)
		}
	}
}

// narrow says why this user's own limits stop an attack anyway.
func narrow(a attack.Attack) string {
	var now syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &now); err == nil && a.Name == "descriptor-bomb" && now.Max < uint64(a.Most) {
		return "this user cannot have so many descriptors itself"
	}
	return ""
}

// TestEveryAttackWorksWithoutItsDefences is the control: a denial is worth something only if the program does harm where
// nothing stops it. Each runs in a sandbox without the defences that its row names, and with all others.
func TestEveryAttackWorksWithoutItsDefences(t *testing.T) {
	for _, y := range yards(controls()) {
		t.Run(y.name, func(t *testing.T) {
			if slices.Contains(y.without, attack.Limits) {
				looseLimits(t)
			}
			yard := open(t, y.rootless, y.without...)
			for _, a := range y.attacks {
				t.Run(a.Name, func(t *testing.T) {
					if why := narrow(a); why != "" {
						t.Skip(why)
					}
					v := yard.judge(t, a)
					switch {
					case v.Absent():
						t.Skip("this kernel has no such thing:", v)
					case !v.Worked:
						t.Errorf("it does no harm anyway: %v", v)
					default:
						t.Log(v)
					}
				})
			}
		})
	}
}

// TestEachDefenceAloneDenies runs attacks that several defences stop with only one of them.
func TestEachDefenceAloneDenies(t *testing.T) {
	for _, y := range yards(alone()) {
		t.Run(y.name, func(t *testing.T) {
			yard := open(t, y.rootless, y.without...)
			for _, a := range y.attacks {
				t.Run(a.Name, func(t *testing.T) {
					if v := yard.judge(t, a); v.Worked {
						t.Errorf("the attack %v", v)
					} else {
						t.Log(v)
					}
				})
			}
		})
	}
}

// judge runs an attack and says what came of it.
func (y *yard) judge(t *testing.T, a attack.Attack) attack.Verdict {
	t.Helper()
	r := y.run(t, a)
	if a.Judge == attack.ByLife && y.off(attack.AllDie) && r.end.Exit == exitSomeLeft {
		return attack.Verdict{Worked: true, How: "it lived when its group had been ended"}
	}
	v, err := r.verdict(a)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// trial is an attack in a sandbox without some defences.
type trial struct {
	attack  attack.Attack
	without []attack.Defence
}

// controls are one trial for each attack, without all that stops it.
func controls() []trial {
	var list []trial
	for _, a := range attack.All() {
		if a.NoControl == "" {
			list = append(list, trial{a, slices.Concat(a.Defences, a.Also)})
		}
	}
	return list
}

// alone are trials in which one of several defences is left.
func alone() []trial {
	var list []trial
	for _, a := range attack.All() {
		if len(a.Defences) < 2 {
			continue
		}
		for i := range a.Defences {
			list = append(list, trial{a, slices.Concat(a.Defences[:i], a.Defences[i+1:], a.Also)})
		}
	}
	return list
}

// group is what one launcher is opened for.
type group struct {
	name     string
	rootless bool
	without  []attack.Defence
	attacks  []attack.Attack
}

// yards puts trials that lack the same together. They run as root with ids of their own, where that can be.
func yards(trials []trial) []*group {
	var list []*group
	for _, tr := range trials {
		rootless := tr.attack.Single || os.Geteuid() != 0
		name := "without"
		for _, d := range tr.without {
			name += "-" + string(d)
		}
		if rootless {
			name = "rootless-" + name
		}
		at := slices.IndexFunc(list, func(g *group) bool { return g.name == name })
		if at < 0 {
			at = len(list)
			list = append(list, &group{name: name, rootless: rootless, without: tr.without})
		}
		list[at].attacks = append(list[at].attacks, tr.attack)
	}
	slices.SortFunc(list, func(a, b *group) int { return strings.Compare(a.name, b.name) })
	return list
}

func TestThisBuildSaysThatItIsUnsafe(t *testing.T) {
	if !sandbox.Unsafe {
		t.Error("a build that can switch defences off says that it cannot")
	}
}

// TestAStepThatHeedsSignalsIsEndedByOne holds the controls of what outlives: there a signal to the group must end what does
// not try to live, so that what lives has lived by itself.
func TestAStepThatHeedsSignalsIsEndedByOne(t *testing.T) {
	for _, mode := range modes() {
		t.Run(mode.name, func(t *testing.T) {
			y := open(t, mode.rootless)
			const tries = 8 // pid 1 signals from any of its threads
			for range tries {
				box, err := y.order(t, attack.Attack{}, plan{Argv: []string{"/bin/sleep", "60"}, Group: true}, newPipes(t))
				if err != nil {
					t.Fatal(err)
				}
				<-box.Done()
				if end := box.End(); end.Exit != exitNoneLeft {
					t.Fatalf("the step did not end: %+v", end)
				}
			}
		})
	}
}
