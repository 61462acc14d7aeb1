//go:build linux

package attack

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// runSetuid runs a file of the sandbox's root with the set-user-id bit.
func runSetuid(*Target) Verdict {
	return runEach(FileSetuid)
}

// runCapable runs a file that has capabilities.
func runCapable(*Target) Verdict {
	return runEach(FileCapable)
}

// Ranges is how many ranges of ids the sandboxes of a test may have.
const Ranges = 5

// runEach runs the programs for every range of ids, of which one is this sandbox's. Each prints what it is given, and is given
// what the kernel says of its own rights.
func runEach(file string) Verdict {
	var v Verdict
	for n := range Ranges {
		status, err := exec.Command(fmt.Sprint(DecoyDir, "/", file, n), "/proc/self/status").Output()
		if err != nil {
			v = denied("run the program", err)
			continue
		}
		if v = judgeRights(string(status)); v.Worked {
			break
		}
	}
	return v
}

// judgeRights looks for the effective id and the effective capabilities.
func judgeRights(status string) Verdict {
	var id, capabilities string
	for line := range strings.Lines(status) {
		fields := strings.Fields(line)
		switch {
		case len(fields) > 2 && fields[0] == "Uid:":
			id = fields[2]
		case len(fields) > 1 && fields[0] == "CapEff:":
			capabilities = strings.Trim(fields[1], "0")
		}
	}
	if id == "0" || capabilities != "" {
		return worked("effective id %s, capabilities %s", id, capabilities)
	}
	return denied(fmt.Sprintf("effective id %s, no capabilities", id), nil)
}

// becomeRoot asks for the id of the sandbox's root.
func becomeRoot(*Target) Verdict {
	if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); errno != 0 {
		return denied("become root", errno)
	}
	return worked("became root")
}

// changeOwner gives a file away, to the sandbox's root.
func changeOwner(*Target) Verdict {
	const name = own + "/owned"
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		return denied("make a file", err)
	}
	if err := os.Chown(name, 0, 0); err != nil {
		return denied("give it to root", err)
	}
	return worked("a file belongs to root")
}

// makeNode makes the node of a device that does no harm.
func makeNode(*Target) Verdict {
	if err := unix.Mknod(own+"/node", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))); err != nil {
		return denied("make a node", err)
	}
	return worked("made the node of a device")
}

// openNode opens one that is in the attempt's folder already.
func openNode(*Target) Verdict {
	fd, err := unix.Open("/work/"+FileNull, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return denied("open the node", err)
	}
	_ = unix.Close(fd)
	return worked("opened a device of the host")
}

// listDevices looks for what no job needs. It opens none.
func listDevices(*Target) Verdict {
	for _, dir := range []string{"/dev", "/host/dev"} {
		list, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, entry := range list {
			switch entry.Name() {
			case "null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "fd", "stdin", "stdout", "stderr":
			default:
				return worked("there is %s/%s", dir, entry.Name())
			}
		}
	}
	return denied("the nodes are those of every sandbox", nil)
}

// nestUsers makes a user namespace, in which it would have every capability.
func nestUsers(*Target) Verdict {
	cmd := exec.Command("/bin/true")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	if err := cmd.Run(); err != nil {
		return denied("start a process in a new user namespace", err)
	}
	return worked("a process ran in a new user namespace")
}

// unshareUsers does so for a process that is there already.
func unshareUsers(*Target) Verdict {
	out, err := exec.Command("/usr/bin/unshare", "--user", "/bin/echo", "worked: left the user namespace").CombinedOutput()
	if err != nil {
		v := denied("unshare: "+string(firstLine(out)), nil)
		v.Errno = unix.EPERM
		return v
	}
	return stageVerdict("unshare", string(out), err)
}

// unshareMounts makes a mount namespace.
func unshareMounts(*Target) Verdict {
	if _, _, errno := unix.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWNS|unix.CLONE_FS, 0, 0); errno != 0 {
		return denied("make a mount namespace", errno)
	}
	return worked("made a mount namespace")
}

// clone3Users does so by the newest call, which a filter cannot look into.
func clone3Users(*Target) Verdict {
	args := struct{ flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64 }{
		flags: unix.CLONE_NEWUSER, exitSignal: uint64(unix.SIGCHLD),
	}
	pid, errno := forkBy(&args)
	if errno != 0 {
		return denied("clone3", errno)
	}
	_, _ = unix.Wait4(pid, nil, 0, nil)
	return worked("a process was made in a new user namespace")
}

// otherCalls makes a user namespace by a system call of the 32-bit table, which has other numbers.
func otherCalls(*Target) Verdict {
	err := exec.Command(DecoyDir + "/" + FileELF32).Run()
	if err != nil {
		v := denied("a 32-bit program", err)
		if errno := exited(err); errno != 0 {
			v.Errno = errno
		}
		return v
	}
	return worked("a 32-bit program made a user namespace")
}

func firstLine(b []byte) []byte {
	for i, c := range b {
		if c == '\n' {
			return b[:i]
		}
	}
	return b
}
