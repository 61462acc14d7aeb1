package launch_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox/launch"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
)

// tryInit starts the init half as nobody but a launcher should, with the namespaces of this process as the launcher's, and
// returns what it printed. It must refuse before it changes anything.
func tryInit(t *testing.T, sys *syscall.SysProcAttr) string {
	t.Helper()
	conn, other, err := packet.Pair("pid 1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	var said bytes.Buffer
	cmd := exec.Command("/proc/self/exe", launch.InitArg)
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles, cmd.SysProcAttr, cmd.Env = &said, &said, []*os.File{other, other}, sys, []string{}
	if err := cmd.Start(); err != nil {
		t.Skip(err) // this machine does not even allow the attempt
	}
	_ = other.Close()
	namespaces := []*os.File{openFile(t, "/proc/self/ns/mnt"), openFile(t, "/proc/self/ns/user")}
	_ = conn.Send(json.RawMessage(`{"Setup":{"Network":1,"Mapped":true}}`), namespaces...) // it may have gone already
	packet.CloseFiles(namespaces)
	err = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 2 {
		t.Errorf("it ends with %d, %v: %s", code, err, said.String())
	}
	return said.String()
}

func openFile(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// 07§140: the calls of the init half would take a host apart.
func TestTheInitHalfRefusesTheHost(t *testing.T) {
	uid := []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}}
	gid := []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	for name, try := range map[string]struct {
		sys  *syscall.SysProcAttr
		want string
	}{
		"on the host":             {&syscall.SysProcAttr{}, "not the first of a namespace"},
		"in other namespaces":     {&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS, UidMappings: uid, GidMappings: gid}, "not the first"},
		"pid 1 and nothing else":  {&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID}, "this is the mnt namespace"},
		"pid 1 on host's mounts":  {&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWUSER, UidMappings: uid, GidMappings: gid}, "this is the mnt namespace"},
		"pid 1 on host's user ns": {&syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}, "this is the user namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			before := mounts(t)
			if said := tryInit(t, try.sys); !strings.Contains(said, try.want) {
				t.Errorf("it says %q", said)
			}
			if after := mounts(t); after != before {
				t.Errorf("the host's mounts were\n%s\nand are\n%s", before, after)
			}
		})
	}
}

func mounts(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	host, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return host + "\n" + string(text)
}

// Started by hand, there is nobody to talk to.
func TestBothHalvesRefuseToBeStartedByHand(t *testing.T) {
	for _, arg := range []string{launch.InitArg, "launch-sandboxes"} {
		for name, files := range map[string][]*os.File{"without files": nil, "with others": {openFile(t, "/dev/zero"), openFile(t, "/dev/zero")}} {
			cmd := exec.Command("/proc/self/exe", arg)
			cmd.ExtraFiles = files
			said, err := cmd.CombinedOutput()
			packet.CloseFiles(files)
			if cmd.ProcessState.ExitCode() != 2 || !strings.Contains(string(said), "this is for the") {
				t.Errorf("%s %s: %v %s", arg, name, err, said)
			}
		}
	}
}
