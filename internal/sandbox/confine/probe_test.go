//go:build linux

package confine

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAMissingFeatureSaysWhyAndWhatMendsIt(t *testing.T) {
	for name, c := range map[string]struct {
		settings  map[string]string
		why, mend string
	}{
		"apparmor": {map[string]string{"kernel/apparmor_restrict_unprivileged_userns": "1"}, "AppArmor", "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		"debian":   {map[string]string{"kernel/unprivileged_userns_clone": "0"}, "other than root", "sysctl -w kernel.unprivileged_userns_clone=1"},
		"none":     {map[string]string{"user/max_user_namespaces": "0"}, "limited to 0", "sysctl -w user.max_user_namespaces=15000"},
		"else":     {nil, "operation not permitted", ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := usersWhy(unix.EPERM, func(name string) string { return c.settings[name] })
			if f.Have || !strings.Contains(f.Why, c.why) || f.Mend != c.mend {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestLandlockCountsFromItsSecondInterfaceAndScopesFromTheSixth(t *testing.T) {
	for grade, want := range map[int][2]bool{0: {}, 1: {}, 2: {true, false}, 5: {true, false}, 6: {true, true}, 7: {true, true}} {
		any, scopes := landlockFor(grade), landlockScopesFor(grade)
		if any.Have != want[0] || scopes.Have != want[1] || any.Grade != grade {
			t.Errorf("grade %d: %+v, %+v", grade, any, scopes)
		}
		for _, f := range []Feature{any, scopes} {
			if !f.Have && (f.Why == "" || f.Mend == "") {
				t.Errorf("grade %d: %s is missing without a reason or a remedy", grade, f.Name)
			}
		}
	}
}

func TestProcessesCanBeHiddenInOneProcFromKernel58On(t *testing.T) {
	for release, want := range map[string]bool{"4.18.0-553.el8": false, "5.4.0": false, "5.8.0": true, "5.15.0-91-generic": true, "6.1.0": true, "strange": false} {
		if got := hiddenProcIn(release).Have; got != want {
			t.Errorf("%s: %v", release, got)
		}
	}
}

func TestProbeNamesEveryFeatureOnce(t *testing.T) {
	var names []string
	for _, f := range Probe() {
		names = append(names, f.Name)
		if !f.Have && f.Why == "" {
			t.Errorf("%s is missing without a reason", f.Name)
		}
	}
	want := []string{FeatureMounts, FeatureUsers, FeatureHiddenProc, FeatureSeccomp, FeatureLandlock, FeatureLandlockScopes}
	if !slices.Equal(names, want) {
		t.Errorf("probed %q", names)
	}
}
