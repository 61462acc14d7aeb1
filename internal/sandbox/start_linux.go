package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/sandbox/packet"
)

// process is a launcher that was started.
type process struct {
	cmd    *exec.Cmd
	conn   *packet.Conn
	stderr *os.File // what its runtime has to say when it breaks
}

// itself is this program, wherever it was moved.
const itself = "/proc/self/exe"

// start starts a launcher in a session and a mount namespace of its own, which makes its mounts end with it. It gets the lock.
func start(path string, rootless bool, lock *os.File) (*process, error) {
	conn, other, err := packet.Pair("launcher")
	if err != nil {
		return nil, err
	}
	defer func() { _ = other.Close() }()
	stderr, stderrEnd, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	defer func() { _ = stderrEnd.Close() }()
	p := &process{conn: conn, stderr: stderr, cmd: &exec.Cmd{
		Path: path, Args: []string{"forgeyard", LauncherArg}, Dir: "/", Env: []string{},
		Stderr: stderrEnd, ExtraFiles: []*os.File{other, lock}, SysProcAttr: attributes(rootless),
	}}
	launch := func() error { return patiently(p.cmd.Start) }
	if rootless {
		launch = func() error { return program.Unguarded(func() error { return patiently(p.cmd.Start) }) } // or the kernel gives the file of its ids to root
	}
	if err := launch(); err != nil {
		return nil, errors.Join(explain(rootless, err), conn.Close(), stderr.Close())
	}
	return p, nil
}

// attributes are those of a launcher. As root it keeps its ids; else it is root of a user namespace with one id, which lets it
// make mounts and further namespaces.
func attributes(rootless bool) *syscall.SysProcAttr {
	if !rootless {
		return &syscall.SysProcAttr{Setsid: true, Unshareflags: syscall.CLONE_NEWNS} // and makes all mounts private
	}
	return &syscall.SysProcAttr{
		Setsid: true, Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}},
	}
}

// explain says what keeps a launcher from starting.
func explain(rootless bool, err error) error {
	switch {
	case rootless && (errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) || errors.Is(err, unix.ENOSPC)):
		return fmt.Errorf("this user may not make user namespaces here: %w; allow it (sysctl user.max_user_namespaces, "+
			"kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), or run the agent as root", err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("root may not make a mount namespace here: %w; a container around the agent needs the capability SYS_ADMIN", err)
	default:
		return fmt.Errorf("start the launcher: %w", err)
	}
}

// MonitorSlack is by how many nanoseconds the kernel may put timers of the launcher and of pid 1 off. A Go program's runtime
// has a thread that looks after the others and wakes every 20 µs as long as there is something to do: several hundred times
// in a sandbox's life. Who is started by a thread with that slack has it in that thread, too. Deadlines are kept by timers
// that know no slack.
const MonitorSlack = 2_000_000

// patiently calls f on a thread whose timers may be late, as may be those of what it starts.
func patiently(f func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, MonitorSlack, 0, 0, 0) // without it the launcher is slower, no more
	defer func() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 0, 0, 0, 0) }()
	return f()
}
