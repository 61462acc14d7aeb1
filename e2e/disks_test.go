//go:build linux

package e2e_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/fleet"
)

// disks are small file systems below the folder of a fleet, each with its bytes. They are in memory.
type disks map[string]uint64

// withOwnMounts is set in a process that has mounts of its own, to the name of the test that runs there.
const withOwnMounts = "FORGEYARD_STORY_MOUNTS"

// ownMounts reports whether this process has mounts of its own, so that disks may be mounted which nobody else sees and which
// vanish with it. Where it has not, the test is run in another one that has.
func ownMounts(t *testing.T) bool {
	t.Helper()
	if os.Getenv(withOwnMounts) == t.Name() {
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatalf("keep mounts from others: %v", err)
		}
		return true
	}
	if os.Geteuid() != 0 {
		t.Skip("mounts small disks, which takes root")
	}
	p := programs(t)
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=true", "-test.count=1")
	cmd.Env = append(os.Environ(), withOwnMounts+"="+t.Name(), fleet.BuiltAlready+"="+filepath.Dir(p.Agent))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		t.Skipf("no mounts of its own: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("with mounts of its own: %v", err)
	}
	return false
}

func (d disks) mount(t *testing.T, folder string) {
	t.Helper()
	for name, bytes := range d {
		at := filepath.Join(folder, name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount("small", at, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", bytes)); err != nil {
			t.Fatalf("mount a small disk: %v", err)
		}
	}
}

func (d disks) unmount(t *testing.T, folder string) {
	t.Helper()
	for name := range d {
		err := unix.Unmount(filepath.Join(folder, name), unix.MNT_DETACH)
		if err != nil && !errors.Is(err, unix.EINVAL) { // which was not mounted
			t.Error(err)
		}
	}
}

// ballast takes all of a disk but so many bytes, until the function that it returns is called.
func ballast(t *testing.T, disk string, leave uint64) (free func()) {
	t.Helper()
	path := filepath.Join(disk, "ballast")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for {
		var room unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &room); err != nil {
			t.Fatal(err)
		}
		left := room.Bavail * uint64(room.Bsize)
		if left <= leave {
			break
		}
		info, err := f.Stat()
		if err != nil {
			t.Fatal(err)
		}
		err = unix.Fallocate(int(f.Fd()), 0, info.Size(), int64(left-leave))
		if err != nil && !errors.Is(err, unix.ENOSPC) { // others write too
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	}
}
