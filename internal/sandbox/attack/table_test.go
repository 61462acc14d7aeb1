//go:build linux

package attack_test

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox/attack"
)

const leastAttacks = 40

func TestEveryItemHasAnAttack(t *testing.T) {
	all := attack.All()
	if len(all) < leastAttacks {
		t.Errorf("%d attacks, want at least %d", len(all), leastAttacks)
	}
	for _, item := range attack.Items() {
		if !slices.ContainsFunc(all, func(a attack.Attack) bool { return a.Item == item }) {
			t.Errorf("no attack on %q", item)
		}
	}
}

func TestEveryAttackHasAControlOrAReason(t *testing.T) {
	names := map[string]bool{}
	for _, a := range attack.All() {
		if names[a.Name] {
			t.Errorf("two attacks are called %s", a.Name)
		}
		names[a.Name] = true
		if (len(a.Defences) == 0) != (a.NoControl != "") {
			t.Errorf("%s: it has the defences %v and the reason %q; it must have either", a.Name, a.Defences, a.NoControl)
		}
		if !slices.Contains(append(attack.Items(), attack.ItemMore), a.Item) {
			t.Errorf("%s: no item %q", a.Name, a.Item)
		}
		if !strings.HasPrefix(a.Threat, "S") {
			t.Errorf("%s: no threat", a.Name)
		}
	}
}

func TestAVerdictIsReadAsItWasPrinted(t *testing.T) {
	for _, v := range []attack.Verdict{
		{Worked: true, How: "read 3 bytes of pid 1 (all of them)"},
		{How: "mount: operation not permitted", Errno: unix.EPERM},
		{How: "nothing there"},
	} {
		got, err := attack.ParseVerdict("noise\n" + v.String() + "\nmore noise\n")
		if err != nil || got != v {
			t.Errorf("ParseVerdict(%q) = %+v, %v", v, got, err)
		}
	}
	if v, err := attack.ParseVerdict("nothing to see\n"); err == nil {
		t.Errorf("a verdict in nothing: %v", v)
	}
}
