package castest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const inSmallDisk = "FORGEYARD_TEST_SMALL_DISK"

// OnSmallDisk runs a test in a process of its own that has a folder on a file system of so many bytes, in memory and in
// its own mount namespace: whatever happens, nothing of it is left. The test is skipped where no such namespace can be had.
// Call it first in the test; what stands before it runs twice.
func OnSmallDisk(t *testing.T, bytes uint64, test func(t *testing.T, dir string)) {
	t.Helper()
	if os.Getenv(inSmallDisk) == t.Name() {
		dir := t.TempDir()
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Skipf("no mount namespace of its own: %v", err)
		}
		if err := unix.Mount("small", dir, "tmpfs", 0, fmt.Sprintf("size=%d", bytes)); err != nil {
			t.Skipf("no tmpfs: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
		test(t, dir)
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v=true", "-test.count=1")
	cmd.Env = append(os.Environ(), inSmallDisk+"="+t.Name())
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if cmd.Process == nil {
		t.Skipf("no mount namespace of its own: %v", err)
	}
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("on a small disk: %v", err)
	}
}
