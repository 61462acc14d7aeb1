//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Where the harness shows things.
const (
	ProgramDir = "/attack" // the folder of the program that plays attacks
	Program    = ProgramDir + "/attack"
	DecoyDir   = "/decoy" // what each sandbox sees of the decoys

	FileWritable = "writable"     // in DecoyDir: everyone may write to it
	FileProgram  = "program"      // everyone may write to it, and it is the program
	FileSetuid   = "setuid-"      // and a number: cat with the set-user-id bit, of the root of a sandbox
	FileCapable  = "capable-"     // and a number: cat with all capabilities in such a sandbox
	FileELF32    = "elf32"        // makes a user namespace by a 32-bit system call
	FileNull     = "node-null"    // in the attempt's folder: the node of a device
	FileLink     = "link"         // in the attempt's folder: a symbolic link to Target.State
	FileSysctl   = "core_pattern" // in DecoyDir, each of them a file that stands for one of the kernel's
	FileSysfs    = "uevent_helper"
	FileRelease  = "release_agent"
	FileProcs    = "cgroup.procs"
	FileKmsg     = "kmsg"
)

// readKey reads an agent's key.
func readKey(t *Target) Verdict { return t.readSecret(t.Key) }

// readOutside reads a file of the host that no view has.
func readOutside(t *Target) Verdict {
	if v := t.readSecret(t.Outside); v.Worked {
		return v
	}
	for _, name := range []string{"/etc/shadow", "/etc/ssh", "/root/.ssh", "/root/.bashrc", "/boot", "/var/lib/dpkg", "/var/log", "/run/docker.sock", "/run/systemd"} {
		if list, err := os.ReadDir(name); err == nil && len(list) > 0 {
			return worked("listed %s with %d entries", name, len(list))
		}
		if data, err := os.ReadFile(name); err == nil {
			return worked("read %d bytes of %s", len(data), name)
		}
	}
	return t.readSecret(t.Outside)
}

// readSecret reads a file that should hold the secret.
func (t *Target) readSecret(name string) Verdict {
	data, err := os.ReadFile(name)
	switch {
	case err != nil:
		return denied("read the decoy", err)
	case t.found(data):
		return worked("read the secret in %s", name)
	default:
		return denied("the file is another one", nil)
	}
}

// listState walks an agent's folder.
func listState(t *Target) Verdict { return t.walk(t.State) }

// readSibling looks for another attempt's folder, by its path and upwards from the own one.
func readSibling(t *Target) Verdict {
	name := filepath.Base(t.Sibling)
	for _, dir := range []string{"/work/..", "/work/../..", "/proc/self/cwd/..", "/tmp/../..", "/work/home/../../"} {
		if v := t.walk(dir + "/" + name); v.Worked {
			return v
		}
	}
	return t.walk(t.Sibling)
}

// walk looks for the secret in every small file below a folder.
func (t *Target) walk(root string) Verdict {
	const mostFiles, mostBytes = 200_000, 64 << 10
	v, seen := Verdict{}, 0
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if seen++; seen > mostFiles {
			return fs.SkipAll
		}
		if err != nil {
			if name == root {
				return err
			}
			return nil
		}
		if t.found([]byte(name)) {
			v = worked("found the secret as a name, %s", name)
			return fs.SkipAll
		}
		if entry.IsDir() {
			return t.boring(name)
		}
		info, err := entry.Info()
		if err != nil || info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0 || info.Size() > mostBytes {
			return nil
		}
		if data, err := readSome(name, mostBytes); err == nil && t.found(data) {
			v = worked("found the secret in %s", name)
			return fs.SkipAll
		}
		return nil
	})
	if v.Worked {
		return v
	}
	if err == nil {
		return denied(fmt.Sprintf("no secret in %d files", seen), nil)
	}
	return denied("walk the folder", err)
}

// boring leaves out what is the machine's software, and the running program's own entry, which has its arguments.
func (t *Target) boring(name string) error {
	switch name {
	case "/usr", "/opt", "/lib", "/lib64", "/bin", "/sbin", ProgramDir, "/proc/self", "/proc/thread-self", fmt.Sprint("/proc/", os.Getpid()):
		return fs.SkipDir
	}
	if strings.HasPrefix(name, "/proc/") && strings.Contains(name, "/task/") {
		return fs.SkipDir
	}
	return nil
}

// readSome reads the beginning of a file, without waiting for one that has nothing yet.
func readSome(name string, most int) ([]byte, error) {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	data := make([]byte, most)
	n, err := unix.Read(fd, data)
	return data[:max(n, 0)], err
}

// sweep looks for the secret everywhere: files, what /proc says of every process, its own environment.
func sweep(t *Target) Verdict {
	if t.found([]byte(strings.Join(os.Environ(), "\n"))) {
		return worked("the secret is in the environment")
	}
	return t.walk("/")
}

// readEnvironment looks for the secret in what it was started with.
func readEnvironment(t *Target) Verdict {
	env := os.Environ()
	if t.found([]byte(strings.Join(env, "\n"))) {
		return worked("the secret is in the environment")
	}
	return denied(fmt.Sprintf("%d variables, none of them the agent's", len(env)), nil)
}

// readLinkedTmp reads through the folder tmp of the attempt, which a link stood for when the sandbox was made.
func readLinkedTmp(t *Target) Verdict {
	for _, dir := range []string{"/tmp", "/work/tmp", "/work/home", "/work/" + FileLink} {
		if v := t.walk(dir + "/."); v.Worked {
			return v
		}
	}
	return denied("the folders are the attempt's own", nil)
}

// openByHandle opens the host's root by a file handle, from the file system that the attempt's folder is on.
func openByHandle(*Target) Verdict {
	mount, err := unix.Open("/work", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return denied("open the folder", err)
	}
	defer unix.Close(mount)
	root := unix.NewFileHandle(1, []byte{2, 0, 0, 0, 0, 0, 0, 0}) // inode 2 of ext4
	fd, err := unix.OpenByHandleAt(mount, root, unix.O_RDONLY)
	if err != nil {
		return denied("open by handle", err)
	}
	defer unix.Close(fd)
	return worked("opened the root of the file system")
}

// overwriteProgram opens the running program for writing once nothing runs it, by a descriptor from before.
func overwriteProgram(*Target) Verdict {
	out, err := runStage(DecoyDir+"/"+FileProgram, stageKeepExe)
	return stageVerdict("write to the program through its descriptor", out, err)
}

// keepExe keeps its own program open and becomes a shell that writes to it. What it appends is nothing.
func keepExe() int {
	fd, err := unix.Open("/proc/self/exe", unix.O_PATH, 0)
	if err != nil {
		fmt.Println(denied("open /proc/self/exe", err))
		return 1
	}
	if fd != 9 {
		if err := unix.Dup2(fd, 9); err != nil {
			fmt.Println(denied("keep the descriptor", err))
			return 1
		}
	}
	const script = `if err=$( { : >>/proc/self/fd/9; } 2>&1 ); then echo 'worked: opened the program for writing'; else echo "denied: $err"; fi`
	err = unix.Exec("/bin/sh", []string{"sh", "-c", script}, nil)
	fmt.Println(denied("become a shell", err))
	return 1
}

// writeReadOnly writes to a file that everyone may write to, on a mount that is read-only.
func writeReadOnly(*Target) Verdict { return appendTo(DecoyDir + "/" + FileWritable) }

// appendTo writes nothing at the end of a file.
func appendTo(name string) Verdict {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_APPEND|unix.O_CLOEXEC, 0)
	if err != nil {
		return denied("open "+name+" for writing", err)
	}
	defer unix.Close(fd)
	return worked("opened %s for writing", name)
}

// writeRoot makes a file in the root.
func writeRoot(*Target) Verdict {
	var last error
	for _, dir := range []string{"/", "/etc", "/dev", "/run", "/run/forgeyard"} {
		name := filepath.Join(dir, "planted")
		if last = os.WriteFile(name, nil, 0o600); last == nil {
			return worked("made %s", name)
		}
	}
	return denied("make a file in the root", last)
}

// climbFromDescriptors tries to reach the host from every folder that is open already.
func climbFromDescriptors(t *Target) Verdict {
	up := strings.Repeat("../", 24) + strings.TrimPrefix(t.Outside, "/")
	var last error
	for fd := unix.AT_FDCWD; fd < 4096; fd++ {
		if fd == unix.AT_FDCWD+1 {
			fd = 0
		}
		file, err := unix.Openat(fd, up, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			if err != unix.EBADF && err != unix.ENOTDIR {
				last = err
			}
			continue
		}
		data := make([]byte, 4096)
		n, _ := unix.Read(file, data)
		_ = unix.Close(file)
		if t.found(data[:max(n, 0)]) {
			return worked("climbed from descriptor %d to %s", fd, t.Outside)
		}
	}
	return denied("climb from every descriptor", last)
}

// useDescriptors looks at what is open besides the three.
func useDescriptors(t *Target) Verdict {
	const most = 1 << 16
	for fd := 3; fd < most; fd++ {
		name, err := os.Readlink(fmt.Sprint("/proc/self/fd/", fd))
		if err != nil || strings.HasPrefix(name, "anon_inode:[event") { // of this program's own runtime
			continue
		}
		data := make([]byte, 4096)
		n, err := unix.Pread(fd, data, 0)
		if err == nil && t.found(data[:n]) {
			return worked("descriptor %d is %s and holds the secret", fd, name)
		}
		return worked("descriptor %d is open: %s", fd, name)
	}
	return denied("no descriptor but the three", nil)
}

// connectSocket speaks to who listens in an agent's folder.
func connectSocket(t *Target) Verdict {
	return t.greeted(unix.AF_UNIX, unix.SOCK_STREAM, &unix.SockaddrUnix{Name: t.Socket})
}

// greeted connects and reads the secret.
func (t *Target) greeted(family, kind int, address unix.Sockaddr) Verdict {
	fd, err := unix.Socket(family, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return denied("make a socket", err)
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, address); err != nil {
		return denied("connect", err)
	}
	data := make([]byte, 4096)
	n, err := unix.Read(fd, data)
	if err != nil {
		return denied("read", err)
	}
	if !t.found(bytes.TrimSpace(data[:n])) {
		return denied("somebody else answered", nil)
	}
	return worked("connected and was told the secret")
}

// pointer is the address of a byte of b, for a system call.
func pointer(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
