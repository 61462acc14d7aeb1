package confine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
	"github.com/forgeyard/forgeyard/internal/sandbox/roomtest"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

func TestMain(m *testing.M) {
	roomtest.Main(m, map[string]func(roomtest.Inside) error{"walls": inWalls, "pid 1": pidOne})
}

type order struct {
	Plan  view.Plan
	Walls confine.Walls
	Argv  []string // run as a step
}

func stand(in roomtest.Inside) (order, error) {
	runtime.LockOSThread() // from which all steps are started
	var o order
	if err := json.Unmarshal(in.Arg, &o); err != nil {
		return o, err
	}
	last := len(in.Files) - 1
	root, err := view.Build(o.Plan, in.Files[:last])
	if err != nil {
		return o, err
	}
	walls, err := confine.Prepare(o.Walls)
	if err = errors.Join(err, root.Attach(in.Files[last]), root.Seal()); err != nil {
		return o, err
	}
	return o, walls.Apply(o.Walls.Processes)
}

// inWalls runs a command as a step behind all walls.
func inWalls(in roomtest.Inside) error {
	o, err := stand(in)
	if err != nil {
		return err
	}
	cmd := exec.Command(o.Argv[0], o.Argv[1:]...)
	cmd.Dir = view.WorkDir
	cmd.Env = []string{
		"PATH=/usr/local/go/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + view.HomeDir, "TMPDIR=/tmp",
		"GOFLAGS=-mod=mod", "GOPROXY=off", "GOTOOLCHAIN=local", "LANG=C.UTF-8",
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	if in.Mapped {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 1000, Gid: 1000}}
	}
	return cmd.Run()
}

// pidOne prints what is left of pid 1 itself.
func pidOne(in roomtest.Inside) error {
	if _, err := stand(in); err != nil {
		return err
	}
	err := confine.AsStep(1000, 1000, func() error {
		return os.WriteFile(filepath.Join(view.SecretsDir, "token"), []byte("x"), 0o400)
	})
	if err != nil {
		return err
	}
	if err := printToken(); err != nil {
		return err
	}
	status, err := os.ReadFile("/proc/thread-self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(status)) {
		for _, want := range []string{"Cap", "NoNewPrivs", "Seccomp:"} {
			if strings.HasPrefix(line, want) {
				fmt.Print(line)
			}
		}
	}
	return nil
}

// printToken looks, as a step, at what was made as a step.
func printToken() error {
	return confine.AsStep(1000, 1000, func() error {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(view.SecretsDir, "token"), &st); err != nil {
			return err
		}
		_, err := fmt.Printf("token %o %d:%d\n", st.Mode&0o777, st.Uid, st.Gid)
		return err
	})
}

// kinds runs a test in a room of either kind.
func kinds(t *testing.T, test func(t *testing.T, mapped bool)) {
	for _, kind := range []string{"mapped", "rootless"} {
		t.Run(kind, func(t *testing.T) { test(t, kind == "mapped") })
	}
}

// behind runs a room's function behind all walls and returns what it printed.
func behind(t *testing.T, room string, mapped bool, argv ...string) (string, error) {
	t.Helper()
	own, err := view.Own()
	if err != nil {
		t.Fatal(err)
	}
	plan, err := view.New(view.Machine(), view.Options{Network: forge.NetworkNone, UID: 1000, GID: 1000, Mapped: mapped, HostNS: own})
	if err != nil {
		t.Fatal(err)
	}
	o := order{Plan: plan, Walls: confine.DefaultWalls(mapped), Argv: argv}
	dir := roomtest.Folder(t)
	return roomtest.Attempt(t, room, mapped, o, dir, func() ([]*os.File, error) { return view.Open(plan) })
}

func shell(t *testing.T, mapped bool, script string) string {
	t.Helper()
	out, err := behind(t, "walls", mapped, "/bin/sh", "-ec", script)
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return out
}
