package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cli"
)

// kind is what a request asks to be confined by.
func kind(r *api.RunRequest) string {
	if s := r.Jobs[0].Spec.Sandbox; s != nil {
		return s.Kind
	}
	return ""
}

func TestAMachineThatCannotConfineRunsAJobOnlyIfItsUserSaysSo(t *testing.T) {
	f := newFake(t)
	got := f.story("Succeeded", 0)
	w := newWorld(t)
	var o cli.LocalOptions
	var live bool
	w.local = local{f.server.URL, &o, &live, true}
	w.run("run", "--", "make").want(t, 3, "", "cannot be confined on this machine: no namespaces here. With --allow-unsandboxed")
	w.run("up").want(t, 3, "", "With --allow-unsandboxed")
	w.run("run", "--allow-unsandboxed", "--", "make").want(t, 0, "", "not confined: no namespaces here")
	if k := kind(got); k != "process" {
		t.Errorf("the job asks for %q", k)
	}
	w.run("run", "--sandbox", "process", "--", "make").want(t, 0, "", "run Succeeded")
	w.run("run", "--sandbox", "native", "--allow-unsandboxed", "--", "make").want(t, 0, "", "")
	if k := kind(got); k != "native" {
		t.Errorf("a job that insists on a sandbox asks for %q", k)
	}
}

func TestAnotherProcessWithoutSandboxesGetsAJobOnlyIfItsUserSaysSo(t *testing.T) {
	f := newFake(t)
	got := f.story("Succeeded", 0)
	kinds := []api.Sandbox{{Kind: "process"}}
	f.on("GET /runners/{id}", func(r *http.Request) any {
		if id := r.PathValue("id"); id != "local" {
			t.Errorf("asked for runner %q", id)
		}
		return &api.Runner{ID: "local", Capabilities: &api.Capabilities{Sandboxes: kinds}}
	})
	w := newWorld(t)
	w.local = nobody{endpoint: f.server.URL}
	w.run("run", "--", "make").want(t, 3, "", "With --allow-unsandboxed")
	w.run("run", "--allow-unsandboxed", "--", "make").want(t, 0, "", "")
	if k := kind(got); k != "process" {
		t.Errorf("the job asks for %q", k)
	}
	kinds = append(kinds, api.Sandbox{Kind: "native"})
	*got = api.RunRequest{}
	w.run("run", "--allow-unsandboxed", "--", "make").want(t, 0, "", "")
	if k := kind(got); k != "" {
		t.Errorf("where there are sandboxes the job asks for %q", k)
	}
}

func TestFlagsAboutThisMachineAreRefusedForOthers(t *testing.T) {
	f := newFake(t)
	w := f.world(t)
	w.run("run", "--allow-unsandboxed", "--", "make").want(t, 64, "", "write --sandbox process")
	w.run("run", "--read-only", "/opt", "--", "make").want(t, 64, "", "sandbox.read_only")
}

func TestWhatJobsMayReadIsPassedOnAsAnAbsolutePath(t *testing.T) {
	f := newFake(t)
	f.story("Succeeded", 0)
	w := newWorld(t)
	var o cli.LocalOptions
	var live bool
	w.local = local{f.server.URL, &o, &live, false}
	w.run("run", "--read-only", "sdk", "--read-only", "/opt/x", "--", "make").want(t, 0, "", "")
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if len(o.ReadOnly) != 2 || o.ReadOnly[0] != filepath.Join(here, "sdk") || o.ReadOnly[1] != "/opt/x" || o.AllowUnsandboxed {
		t.Errorf("options %+v", o)
	}
}
