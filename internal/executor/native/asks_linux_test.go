package native_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
)

func TestAJobWithoutANetworkIsToldWhatItAskedFor(t *testing.T) {
	e := openExecutor(t, native.Config{})
	j := newJob(t, "getent hosts modules.example.org || echo none", "echo quiet")
	if o := j.run(e); o.Result.Class != forge.Succeeded || j.sink.Text(forge.LogStdout) != "none\nquiet\n" {
		t.Fatalf("ended %+v, printed %q", o, j.sink.Text(forge.LogStdout))
	}
	if n := j.notices(); strings.Count(n, "asked for modules.example.org. If it needs one, ask for network: host") != 1 {
		t.Errorf("the log says %q", n)
	}
}

// refused prepares a job that must be refused, and returns why.
func refused(t *testing.T, e *native.Executor, j *job) string {
	t.Helper()
	w, err := e.Prepare(context.Background(), j.order)
	if err == nil {
		_ = w.Close()
		t.Fatal("it was taken")
	}
	if setup := (*executor.SetupError)(nil); !errors.As(err, &setup) || setup.Class != forge.SandboxSetup {
		t.Errorf("refused with %#v", err)
	}
	return err.Error()
}

func TestTheHostsNetworkNeedsTheOwnersConsent(t *testing.T) {
	j := newJob(t, "readlink /proc/self/ns/net")
	j.order.Spec.Network = forge.NetworkHost
	if why := refused(t, openExecutor(t, native.Config{}), j); !strings.Contains(why, "the owner of the machine does not allow that") {
		t.Error(why)
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	e := openExecutor(t, native.Config{Policy: forge.LocalPolicy{AllowHostNetwork: true}})
	if o := j.run(e); o.Result.Class != forge.Succeeded || strings.TrimSpace(j.sink.Text(forge.LogStdout)) != own {
		t.Errorf("with consent it ended %+v in %q, this is %q", o, j.sink.Text(forge.LogStdout), own)
	}
	j = newJob(t, "readlink /proc/self/ns/net")
	if j.run(e); strings.TrimSpace(j.sink.Text(forge.LogStdout)) == own {
		t.Error("a job that did not ask has the host's network")
	}
}

func TestAWallThatTheMachineDoesNotGiveIsNamed(t *testing.T) {
	e := openExecutor(t, native.Config{NoCgroups: true, Rootless: true})
	for level, want := range map[string]string{
		string(sandbox.LevelCgroupMemory): `"cgroup-memory", which this machine does not give`,
		string(sandbox.LevelMappedUIDs):   `"mapped-uids", which this machine does not give`,
		"moat":                            `"moat", of which this version knows nothing`,
	} {
		j := newJob(t, "echo no")
		j.order.Spec.Sandbox.Levels = []string{level}
		if why := refused(t, e, j); !strings.Contains(why, want) {
			t.Error(why)
		}
	}
	j := newJob(t, "echo yes")
	j.order.Spec.Sandbox.Levels = []string{string(sandbox.LevelPIDNamespace), string(sandbox.LevelSeccomp)}
	if o := j.run(e); o.Result.Class != forge.Succeeded {
		t.Errorf("walls that are there: %+v", o)
	}
}

func TestToolchainsComeFirstAndCannotBeChanged(t *testing.T) {
	chain := shown(t, "chain")
	if err := os.Mkdir(filepath.Join(chain, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(chain, "bin", "make"), []byte("#!/bin/sh\necho ours\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	e := openExecutor(t, native.Config{Toolchains: []string{chain}, Path: []string{"/usr/games/none", "/usr/bin", "/var/lib"}})
	j := newJob(t, `make; echo $PATH; touch `+chain+`/bin/new 2>/dev/null || echo kept`)
	j.run(e)
	lines := strings.Split(j.sink.Text(forge.LogStdout), "\n")
	if lines[0] != "ours" || !strings.HasPrefix(lines[1], chain+"/bin:/usr/bin:") || strings.Contains(lines[1], "/var/lib") || lines[2] != "kept" {
		t.Errorf("printed %q", lines)
	}
}

// shown makes a folder that sandboxes may show: not below /tmp or /var, which they have of their own.
func shown(t *testing.T, name string) string {
	t.Helper()
	for _, base := range []string{"/srv", "/mnt", "/home", os.Getenv("HOME")} {
		if dir, err := os.MkdirTemp(base, name); err == nil {
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			return dir
		}
	}
	t.Skip("there is no folder to make one in")
	return ""
}

func TestWhatCannotBeShownIsTheOwnersMistakeAndNoLackOfTheMachine(t *testing.T) {
	for _, path := range []string{"/no/such/folder", "/proc/self", "/tmp"} {
		_, err := native.Open(t.Context(), native.Config{State: filepath.Join(t.TempDir(), "state"), ReadOnly: []string{path}})
		if bad := (*native.BadView)(nil); !errors.As(err, &bad) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// Cloning, status and build of a real repository, as a user would.
func TestAFreshCloneOfARepositoryIsAtHome(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("these sources are in no repository of git")
	}
	e := openExecutor(t, native.Config{ReadOnly: []string{root + ":/repository"}})
	j := newJob(t, "git clone -q file:///repository .", "test -z \"$(git status --short)\"", "go version", "go build ./internal/redact",
		"make help >/dev/null", "git -C /repository log -1 --format=%H >/dev/null")
	if o := j.run(e); o.Result.Class != forge.Succeeded {
		t.Errorf("ended %+v\n%s\n%s", o.Result, j.sink.Text(forge.LogStdout), j.sink.Text(forge.LogStderr))
	}
}

func TestAStepSeesNothingOfTheAgent(t *testing.T) {
	state := filepath.Join(shown(t, "agent"), "state")
	e := openExecutor(t, native.Config{State: state, ReadOnly: []string{filepath.Dir(state)}, Hide: []string{state}})
	j := newJob(t, "ls "+filepath.Dir(state)+"; ls -A "+state+" 2>/dev/null; tr '\\0' '\\n' </proc/1/environ 2>/dev/null; hostname; id -un")
	j.run(e)
	if got := j.sink.Text(forge.LogStdout); got != "state\nforgeyard\nforgeyard\n" {
		t.Errorf("it sees %q", got)
	}
}
