package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
)

// judgement is a finding and what is wanted of it.
type judgement struct {
	name  string
	got   Finding
	grade Grade
	words string // in its detail or remedy
}

// judge checks judgements, each with a remedy where something is not ok and one is to be had.
func judge(t *testing.T, all []judgement) {
	t.Helper()
	for _, j := range all {
		if j.got.Grade != j.grade || !strings.Contains(j.got.Detail+" | "+j.got.Mend, j.words) {
			t.Errorf("%s: %+v, want %s with %q", j.name, j.got, j.grade, j.words)
		}
		if (j.got.Grade == OK) != (j.got.Mend == "") {
			t.Errorf("%s: %+v: a remedy belongs to what is not ok", j.name, j.got)
		}
	}
}

func TestSettingsOfUserNamespaces(t *testing.T) {
	of := func(root bool, values map[string]string) []Finding {
		return settings(func(name string) string { return values[name] }, root)
	}
	const number, clone, armor = "user/max_user_namespaces", "kernel/unprivileged_userns_clone", "kernel/apparmor_restrict_unprivileged_userns"
	plain := of(false, map[string]string{number: "30000"})
	closed := of(false, map[string]string{number: "0", clone: "0", armor: "1"})
	root := of(true, map[string]string{number: "10", clone: "0", armor: "1"})
	open := of(false, map[string]string{number: "30000", clone: "1", armor: "0"})
	judge(t, []judgement{
		{"a plain kernel, number", plain[0], OK, "30000"},
		{"a plain kernel, clone", plain[1], OK, ""},
		{"a plain kernel, AppArmor", plain[2], OK, ""},
		{"no namespaces", closed[0], Missing, "sysctl -w user.max_user_namespaces"},
		{"Debian's setting", closed[1], Missing, "sysctl -w kernel.unprivileged_userns_clone=1"},
		{"Ubuntu's setting", closed[2], Missing, "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"},
		{"few namespaces", root[0], Weak, "each sandbox needs one"},
		{"root does not care for Debian's", root[1], OK, "does not matter to root"},
		{"nor for Ubuntu's", root[2], OK, "does not matter to root"},
		{"switched on, clone", open[1], OK, ""},
		{"switched on, AppArmor", open[2], OK, ""},
		{"a kernel without", of(true, nil)[0], Missing, "CONFIG_USER_NS"},
	})
}

func TestFeaturesAndGrants(t *testing.T) {
	given := groupsOf(cgroup.Report{Version: cgroup.V2, Parent: "/there", Memory: cgroup.Grant{Given: true}, CPU: cgroup.Grant{Why: "no", Mend: "do"}})
	judge(t, []judgement{
		{"landlock", feature(confine.Feature{Name: "landlock", Have: true, Grade: 6}), OK, "ABI 6"},
		{"no landlock", feature(confine.Feature{Name: "landlock", Why: "old", Mend: "new"}), Missing, "old | new"},
		{"memory", given[0], OK, "version 2, below /there"},
		{"cpu", given[2], Weak, "jobs are not bound in processor time: no | do"},
	})
}

func TestBuffersAndPaths(t *testing.T) {
	judge(t, []judgement{
		{"a small buffer", bufferOf("b", 425_984), Weak, "sysctl -w net.core.rmem_max"},
		{"one byte less", bufferOf("b", wantedBuffer-1), Weak, ""},
		{"as QUIC wants it", bufferOf("b", wantedBuffer), OK, ""},
		{"ethernet", pathOf("p", 1500, false), OK, "1500"},
		{"just enough", pathOf("p", 1308, false), OK, ""},
		{"a little less", pathOf("p", 1307, false), Weak, "ours begin with 1308"},
		{"more headers", pathOf("p", 1308, true), Weak, "ours begin with 1328"},
		{"just QUIC", pathOf("p", 1228, false), Weak, ""},
		{"no QUIC", pathOf("p", 1227, false), Missing, "ip link set"},
		{"no address", path(context.Background(), "127.0.0.1"), Missing, "getent ahosts 127.0.0.1"},
	})
}

func TestClocks(t *testing.T) {
	behind := func(d time.Duration) func(context.Context) (time.Time, error) {
		return func(context.Context) (time.Time, error) { return time.Now().Add(-d), nil }
	}
	failing := func(context.Context) (time.Time, error) { return time.Time{}, errors.New("nobody home") }
	judge(t, []judgement{
		{"kept", synchronised(0, nil), OK, ""},
		{"not kept", synchronised(timeError, nil), Weak, "timedatectl"},
		{"not said", synchronised(0, errors.New("hush")), Weak, "hush"},
		{"exact", skewOf(0), OK, "0s"},
		{"a little", skewOf(-4 * time.Second), OK, "4s behind"},
		{"visible", skewOf(weakSkew), Weak, "5s ahead"},
		{"behind", skewOf(-badSkew), Missing, "certificates"},
		{"the daemon is an hour behind", against(t.Context(), behind(time.Hour)), Missing, "1h0m0s ahead"},
		{"the daemon agrees", against(t.Context(), behind(0)), OK, ""},
		{"this machine", boot(), OK, "sleep"},
	})
	if f := against(t.Context(), failing); f.Grade != Weak || !strings.Contains(f.Detail, "nobody home") {
		t.Errorf("%+v, want it weak with the reason", f)
	}
}

func TestDisks(t *testing.T) {
	judge(t, []judgement{
		{"full", spaceOf("/d", leastDisk-1), Missing, "/d"},
		{"narrow", spaceOf("/d", wantedDisk-1), Weak, "/d"},
		{"wide", spaceOf("/d", wantedDisk), OK, "/d"},
		{"many files", filesOf("/d", 1<<20, leastFiles), OK, ""},
		{"few files", filesOf("/d", 1<<20, leastFiles-1), Weak, "/d"},
		{"as they come", filesOf("/d", 0, 0), OK, ""},
	})
	if f := disk(filepath.Join(t.TempDir(), "none"))[0]; f.Grade != Missing {
		t.Errorf("%+v, want a folder that is not there to be missing", f)
	}
}

// Decision D12.
func TestToolchainsBelowHomeAreNamedWithTheLineThatAllowsThem(t *testing.T) {
	home := t.TempDir()
	node := filepath.Join(home, ".nvm", "versions", "v22")
	goDir := filepath.Join(home, "go", "bin")
	plain := filepath.Join(home, "scripts")
	for _, file := range []string{filepath.Join(node, "bin", "node"), filepath.Join(node, "bin", "npm"), filepath.Join(goDir, "go"), filepath.Join(plain, "backup")} {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o700); err != nil { //nolint:gosec // It stands for a program.
			t.Fatal(err)
		}
	}
	path := strings.Join([]string{"/usr/bin", filepath.Join(node, "bin"), goDir, filepath.Join(node, "bin"), plain, ""}, ":")
	found := toolchains(path, home, []string{filepath.Join(home, "go")})
	if len(found) != 2 {
		t.Fatalf("%+v, want two toolchains", found)
	}
	judge(t, []judgement{
		{"node", found[0], Weak, "node, npm"},
		{"its line", found[0], Weak, `sandbox.toolchains: ["` + node + `"]`},
		{"an allowed one", found[1], OK, "go"},
		{"none", toolchains("/usr/bin:/bin", home, nil)[0], OK, "none of PATH"},
	})
	if all := toolchains("", home, nil); all != nil {
		t.Errorf("%+v without a PATH, want nothing", all)
	}
}
