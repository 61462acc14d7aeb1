package sandbox

import (
	"context"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/disk"
	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestConfigurationsThatCannotBeAreRefused(t *testing.T) {
	good := Config{State: t.TempDir()}
	if err := good.check(); err != nil || good.Slots != DefaultSlots || good.UIDBase != DefaultUIDBase {
		t.Errorf("%v %+v", err, good)
	}
	for name, change := range map[string]func(*Config){
		"absolute path": func(c *Config) { c.State = "state" },
		"slots":         func(c *Config) { c.Slots = MaxSlots + 1 },
		"wait":          func(c *Config) { c.Pool = MaxPool + 1 },
		"PATH":          func(c *Config) { c.View.Path = []string{"bin"} },
		"shows":         func(c *Config) { c.View.ReadOnly = []Mount{{Source: "usr"}} },
		"view with":     func(c *Config) { c.View.ReadOnly = make([]Mount, MaxMounts+1) },
	} {
		c := Config{State: t.TempDir()}
		change(&c)
		if err := c.check(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestIDsOfSandboxesAreNoneOfTheHostsAndFit(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root has ids to give")
	}
	ranges := uint64(Ranges(10, 2))
	highest := uint32(math.MaxUint32 - ranges*SlotIDs)
	for base, good := range map[uint32]bool{1000: false, SlotIDs - 1: false, SlotIDs: true, highest: true, highest + 1: false} {
		c := Config{State: t.TempDir(), UIDBase: base, Slots: 10, Pool: 2}
		if err := c.check(); (err == nil) != good {
			t.Errorf("base %d: %v", base, err)
		}
	}
}

func TestOrdersHaveNamesThatAreNoPaths(t *testing.T) {
	for name, good := range map[string]bool{
		"attempt-01": true, strings.Repeat("x", MaxName): true,
		"": false, ".": false, "..": false, "a/b": false, "a b": false, "-a": false, "a\n": false, strings.Repeat("x", MaxName+1): false,
	} {
		o := Order{
			Name: name, Folder: "/f", Network: forge.NetworkNone, Deadline: 1, Keeper: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		}
		if err := o.check(); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// sleeper starts a process that a record can name.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}

// Its launcher may have been killed between the writing of the record and its name.
func TestARecordedSandboxIsKilledAndItsRecordRemoved(t *testing.T) {
	for _, name := range []string{"7" + RecordSuffix, "7" + RecordSuffix + unfinished} {
		state := t.TempDir()
		cmd := sleeper(t)
		r, err := NewRecord(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(state, name)
		if err := r.WriteRecord(path); err != nil {
			t.Fatal(err)
		}
		if err := KillLeftovers(t.Context(), state); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			t.Errorf("%s: the process ended with %v", name, err)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Process ids are used again, also after a restart of the machine.
func TestAProcessThatTookOverARecordedIDIsNotKilled(t *testing.T) {
	cmd := sleeper(t)
	for name, change := range map[string]func(*Record){
		"start": func(r *Record) { r.Start++ },
		"boot":  func(r *Record) { r.Boot = "another" },
		"none":  func(r *Record) { r.PID = 1 },
	} {
		state := t.TempDir()
		r, err := NewRecord(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		change(&r)
		if err := r.WriteRecord(filepath.Join(state, "7"+RecordSuffix)); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, "8"+RecordSuffix), []byte("{"), 0o600); err != nil { // cut off
			t.Fatal(err)
		}
		if err := KillLeftovers(t.Context(), state); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := startOf(cmd.Process.Pid); err != nil {
		t.Errorf("the process has gone: %v", err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil { // it can still be signalled, so nobody has killed it
		t.Error(err)
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "interrupt") {
		t.Errorf("the process ended with %v", err)
	}
}

// A lock that nobody lets go of is an error that says where, and not a wait without an end.
func TestALockThatStaysIsAnError(t *testing.T) {
	state := t.TempDir()
	lock, err := os.Create(filepath.Join(state, LockFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lock.Close() }()
	if err := disk.Lock(lock); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := KillLeftovers(ctx, state); !errors.Is(err, disk.ErrLocked) || !strings.Contains(err.Error(), state) {
		t.Errorf("%v", err)
	}
}

func TestAReportSaysWhyAWallIsMissing(t *testing.T) {
	r := Report{Levels: []Level{LevelSeccomp}, Missing: []Missing{{Level: LevelLandlock, Why: "too old", Mend: "update it"}}}
	if !r.Has(LevelSeccomp) || r.Has(LevelLandlock) {
		t.Error("it has what it has not")
	}
	if text := r.Sorry(LevelLandlock); text != "landlock: too old (update it)" {
		t.Error(text)
	}
	if text := r.Sorry("moat"); !strings.HasPrefix(text, "moat: ") {
		t.Error(text)
	}
}

// Switches exist in builds that are made for them alone.
func TestThisBuildSwitchesNothingOff(t *testing.T) {
	if !Unsafe && (Switches{}).Off("seccomp") {
		t.Error("it does")
	}
}
