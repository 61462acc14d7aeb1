package view_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/roomtest"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

func TestMain(m *testing.M) {
	roomtest.Main(m, map[string]func(roomtest.Inside) error{"view": inView})
}

// order is what a test sends into a room.
type order struct {
	Plan   view.Plan
	Script string // run by a shell as a step once the view is sealed
}

// inView builds the view and runs the script in it as a step. The last of the files is the attempt's folder.
func inView(in roomtest.Inside) error {
	var o order
	if err := json.Unmarshal(in.Arg, &o); err != nil {
		return err
	}
	last := len(in.Files) - 1
	root, err := view.Build(o.Plan, in.Files[:last])
	if err != nil {
		return err
	}
	if !root.Hidden() {
		fmt.Println("hidepid is missing")
	}
	if err := root.Attach(in.Files[last]); err != nil {
		return err
	}
	if err := root.Seal(); err != nil {
		return err
	}
	// Package confine does this in the product. Without it a step with pid 1's id could trace it, and so sees it.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", o.Script)
	cmd.Dir = view.WorkDir
	cmd.Env = []string{"PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + view.HomeDir, "TMPDIR=/tmp"}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	if in.Mapped {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	}
	return cmd.Run()
}

func options(t *testing.T, mapped bool) view.Options {
	t.Helper()
	own, err := view.Own()
	if err != nil {
		t.Fatal(err)
	}
	return view.Options{Network: forge.NetworkNone, UID: 1000, GID: 1000, Mapped: mapped, HostNS: own}
}

// both runs a script as a step in a room of either kind and wants it to print the same lines.
func both(t *testing.T, change func(*view.Options), script string, want ...string) {
	t.Helper()
	for _, kind := range []string{"mapped", "rootless"} {
		t.Run(kind, func(t *testing.T) {
			o := options(t, kind == "mapped")
			if change != nil {
				change(&o)
			}
			got := strings.TrimSpace(step(t, o, script))
			if got != strings.TrimSpace(strings.Join(want, "\n")) {
				t.Errorf("the step printed\n%s\nand should have printed\n%s", got, strings.Join(want, "\n"))
			}
		})
	}
}

func step(t *testing.T, o view.Options, script string) string {
	t.Helper()
	plan, err := view.New(view.Machine(), o)
	if err != nil {
		t.Fatal(err)
	}
	out, err := inFolder(t, o, plan, script, func(string) error { return nil })
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return out
}

// inFolder runs a script as a step of an attempt whose folder is prepared by a function.
func inFolder(t *testing.T, o view.Options, plan view.Plan, script string, prepare func(dir string) error) (string, error) {
	t.Helper()
	dir := roomtest.Folder(t)
	if err := prepare(dir); err != nil {
		t.Fatal(err)
	}
	return roomtest.Attempt(t, "view", o.Mapped, order{Plan: plan, Script: script}, dir, func() ([]*os.File, error) { return view.Open(plan) })
}
