package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/sandbox"
)

// examined is what the doctor says of this machine when a sandbox is built like that.
func examined(t *testing.T, o Options, built sandbox.Report, err error) Report {
	t.Helper()
	o.Folder, o.Child = filepath.Join(t.TempDir(), "not", "yet"), []string{childArg}
	o.Build = func(context.Context, string) (sandbox.Report, error) { return built, err }
	return Examine(t.Context(), o)
}

// want checks one finding.
func want(t *testing.T, r Report, check string, grade Grade, words string) {
	t.Helper()
	f, ok := r.Find(check)
	if !ok {
		t.Errorf("nothing is said of %q", check)
		return
	}
	if f.Grade != grade || !strings.Contains(f.Detail+" | "+f.Mend, words) {
		t.Errorf("%+v, want it %s with %q", f, grade, words)
	}
}

// Claim 3.9.
func TestAMachineIsLookedAtWhollyAndNothingStays(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	r := examined(t, Options{Endpoints: []string{"127.0.0.1:7443"}}, sandbox.Report{Levels: sandbox.Levels()}, nil)
	if !r.Confined {
		t.Error("jobs are not confined, though a sandbox was built")
	}
	for _, check := range []string{
		"sandbox", "wall seccomp", "wall hidden-proc", "number of user namespaces", "unprivileged user namespaces",
		"AppArmor and user namespaces", "kernel seccomp", "kernel landlock", "kernel user-namespace", "control groups memory",
		"control groups swap", "control groups cpu", "control groups pids", "overlay", "id-mapped mounts", "UDP receive buffer",
		"UDP send buffer", "path to 127.0.0.1:7443", checkSync, checkBoot, "disk space", "disk files",
	} {
		f, ok := r.Find(check)
		if !ok {
			t.Errorf("nothing is said of %q", check)
		}
		if f.Grade == "" || f.Grade == OK && f.Mend != "" || f.Grade != OK && f.Detail == "" {
			t.Errorf("%+v: a reason belongs to what is not ok, and a remedy to nothing else", f)
		}
	}
	after, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || !bytes.Equal(mounts, after) {
		t.Errorf("the mounts have changed: %v\n%s\n%s", err, mounts, after)
	}
}

func TestTheFolderIsLeftAsItWas(t *testing.T) {
	folder := t.TempDir()
	Examine(t.Context(), Options{
		Folder: folder, Child: []string{childArg},
		Build: func(_ context.Context, state string) (sandbox.Report, error) {
			if filepath.Dir(filepath.Dir(state)) != folder {
				t.Errorf("a launcher works in %s, not below %s", state, folder)
			}
			return sandbox.Report{}, nil
		},
	})
	left, err := os.ReadDir(folder)
	if err != nil || len(left) > 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}

func TestARealSandboxIsBuiltAndLetGo(t *testing.T) {
	r := Examine(t.Context(), Options{Folder: t.TempDir(), Child: []string{childArg}})
	f, _ := r.Find("sandbox")
	if !r.Confined {
		t.Skip("no sandbox can be built here: " + f.Detail)
	}
	want(t, r, "sandbox", OK, "built, with")
	want(t, r, "wall pid-namespace", OK, "")
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Check, "wall ") && f.Grade != OK && f.Detail == "not given here" {
			t.Errorf("%+v: no reason is given", f)
		}
	}
}

func TestWithoutASandboxNothingIsConfinedAndTheReasonIsSaid(t *testing.T) {
	r := examined(t, Options{}, sandbox.Report{}, errors.New("the moon is full"))
	if r.Confined {
		t.Error("jobs are confined, though no sandbox was built")
	}
	want(t, r, "sandbox", Missing, "the moon is full")
	want(t, r, "sandbox", Missing, "--allow-unsandboxed")
}

func TestAWallThatIsMissingIsWeakWithReasonAndRemedy(t *testing.T) {
	built := sandbox.Report{
		Levels:  []sandbox.Level{sandbox.LevelSeccomp},
		Missing: []sandbox.Missing{{Level: sandbox.LevelLandlock, Why: "no such luck", Mend: "boot again"}},
	}
	r := examined(t, Options{}, built, nil)
	want(t, r, "wall seccomp", OK, "")
	want(t, r, "wall landlock", Weak, "no such luck | boot again")
	want(t, r, "wall mapped-uids", Weak, "not given here")
	if !r.Confined {
		t.Error("jobs are not confined, though a sandbox was built")
	}
}

// Root has every right that the real child needs, on the kernels that we support.
func TestTheChildTriesMountsWhereNobodySees(t *testing.T) {
	r := examined(t, Options{}, sandbox.Report{}, nil)
	if os.Geteuid() != 0 {
		want(t, r, "id-mapped mounts", Weak, "run the agent as root")
		return
	}
	for _, check := range []string{"overlay", "id-mapped mounts"} {
		if f, _ := r.Find(check); strings.Contains(f.Detail, "cannot be tried") {
			t.Errorf("%+v: the child did not run", f)
		}
	}
}

// The child must never mount in the namespace of the one who asks.
func TestTheChildRefusesToMountInItsParentsNamespace(t *testing.T) {
	host, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, host := range map[string]string{"the same": host, "not told": ""} {
		told, err := json.Marshal(errand{Folder: folder, Host: host, IDs: true})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		if err := Child(bytes.NewReader(told), &out); err == nil || out.Len() > 0 {
			t.Errorf("%s: %v, answered %q; want a refusal", name, err, out.String())
		}
	}
	if err := Child(strings.NewReader("{"), &bytes.Buffer{}); err == nil {
		t.Error("half an errand was carried out")
	}
}
