package program

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// nobody is a user without rights, for a test that root runs: everything of root's belongs to root anyway.
const nobody = 65534

// startAs starts a player as a user that is not root.
func startAs(t *testing.T, role string) *player {
	t.Helper()
	if os.Geteuid() != 0 {
		return start(t, role)
	}
	dir := t.TempDir()
	binary, err := os.ReadFile(os.Args[0]) // where it is, others may not look
	if err != nil {
		t.Fatal(err)
	}
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	copied := filepath.Join(dir, "player")
	if err := os.WriteFile(copied, binary, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(copied)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return startCommand(t, cmd, role)
}

// owner returns whose the process is, as its folder in /proc says.
func owner(t *testing.T, pid int) uint32 {
	t.Helper()
	info, err := os.Stat(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// Threat S30.
func TestAGuardedProcessKeepsItsMemoryToItself(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to look at a process that nobody else may look at")
	}
	p := startAs(t, "guarded")
	pid := p.cmd.Process.Pid
	limits, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(limits), "\nMax core file size        0 ") {
		t.Errorf("it may leave a core dump:\n%s", limits)
	}
	if uid := owner(t, pid); uid != 0 {
		t.Errorf("its environment can be read by user %d, as which it runs", uid)
	}
	p.signal(t, syscall.SIGINT)
	p.ends(t, CodeOK, "")
}

func TestAProcessWithoutAGuardIsItsUsers(t *testing.T) {
	p := startAs(t, "graceful")
	if uid := owner(t, p.cmd.Process.Pid); uid == 0 {
		t.Error("the test cannot tell one from the other")
	}
	p.signal(t, syscall.SIGINT)
	p.expect(t, "stopping: signal: interrupt")
	p.ends(t, CodeOK, "")
}

// A guarded process that is not root still starts programs in user namespaces, and is guarded after that.
func TestAGuardedProcessMakesUserNamespaces(t *testing.T) {
	p := startAs(t, "namespaces")
	p.lines.Scan()
	if said := p.lines.Text(); strings.HasPrefix(said, "skip") {
		p.ends(t, CodeOK, "")
		t.Skip(said)
	} else if said != "made" {
		t.Errorf("the program said %q", said)
	}
	if uid := owner(t, p.cmd.Process.Pid); uid != 0 {
		t.Errorf("after it, it belongs to %d", uid)
	}
	p.signal(t, syscall.SIGINT)
	p.ends(t, CodeOK, "")
}

// wantCore raises the limit of core dumps as far as this process may.
func wantCore() error {
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return unix.Setrlimit(unix.RLIMIT_CORE, &limit)
}

// namespaces starts a program in a user namespace, guarded, and says how that went.
func namespaces() string {
	run := func() error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags: syscall.CLONE_NEWUSER, UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		}
		return cmd.Run()
	}
	if err := run(); err != nil {
		return "skip: there are no user namespaces here: " + err.Error()
	}
	if err := Guard(); err != nil {
		return err.Error()
	}
	if os.Geteuid() != 0 && !errors.Is(run(), os.ErrPermission) {
		return "the guard does not matter"
	}
	if err := Unguarded(run); err != nil {
		return err.Error()
	}
	return "made"
}
