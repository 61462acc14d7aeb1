package cgroup_test

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// asGuest makes this binary the first process of a virtual machine. The kernel hands it on
// from its command line.
const asGuest = "FORGEYARD_CGROUP_GUEST"

// guestVerdict is what the guest prints at its end, before its exit code.
const guestVerdict = "the guest's tests ended with"

// guestMounts are what a machine without a system on it lacks.
var guestMounts = []struct{ source, target, kind string }{
	{"devtmpfs", "/dev", "devtmpfs"},
	{"proc", "/proc", "proc"},
	{"sysfs", "/sys", "sysfs"},
	{"cgroup2", "/sys/fs/cgroup", "cgroup2"},
	{"tmpfs", "/tmp", "tmpfs"},
}

// beGuest runs the tests as the first process of a machine that was made for them, and then
// switches it off. It refuses anywhere else: there must be nothing mounted on /proc yet.
func beGuest() {
	if os.Getpid() != 1 || os.Getenv(asGuest) == "" {
		return
	}
	if _, err := os.Lstat("/proc/self"); err == nil {
		return
	}
	code := -1
	err := prepareGuest()
	if err == nil {
		code, err = runInGuest()
	}
	fmt.Println(guestVerdict, code, err)
	_ = unix.IoctlSetInt(unix.Stdout, unix.TCSBRK, 1) // waits until the console has sent it
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// prepareGuest makes what the tests need.
func prepareGuest() error {
	for _, m := range guestMounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil { //nolint:gosec // It is the guest's only user's.
			return err
		}
		if err := unix.Mount(m.source, m.target, m.kind, 0, ""); err != nil && m.kind != "devtmpfs" {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := os.Chmod("/tmp", 0o777); err != nil { //nolint:gosec // As /tmp is everywhere.
		return err
	}
	return loopback()
}

// loopback brings up the only network device that the tests use.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo)
}

// runInGuest runs this binary as a test and reaps whatever else ends, as a first process must.
func runInGuest() (int, error) {
	p, err := os.StartProcess("/proc/self/exe", []string{"cgroup.test", "-test.v", "-test.timeout=10m"}, &os.ProcAttr{
		Env:   []string{"PATH=/", "TMPDIR=/tmp", "HOME=/tmp"},
		Files: []*os.File{os.Stdin, os.Stdout, os.Stdout},
	})
	if err != nil {
		return -1, err
	}
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		if err != nil && err != syscall.EINTR {
			return -1, err
		}
		if pid == p.Pid {
			return status.ExitStatus(), nil
		}
	}
}
