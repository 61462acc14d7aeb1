// Package roomtest gives tests of walls a process to build them around: pid 1 of new namespaces, in the two ways in which the
// product makes them. It does no part of the product's work itself.
//
// The child refuses unless it is pid 1 and in another mount namespace than its parent's: what tests run in it would take the
// machine's root apart otherwise. Its namespaces, and with them its mounts and processes, end with it, also when the test is
// killed. It starts no goroutine beyond those of os/exec, which Run joins.
package roomtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Ids of the two kinds of room.
const (
	StepID     = 1000
	MappedBase = 1_879_048_192 // the host's ids of a mapped room
	loneID     = 54_321        // the host's only id of a rootless room
	patience   = 60 * time.Second
)

const (
	envRoom   = "FORGEYARD_TEST_ROOM"   // the name of what to run
	envParent = "FORGEYARD_TEST_PARENT" // the parent's mount namespace
	envStage  = "FORGEYARD_TEST_STAGE"  // the launcher's stand-in of a rootless room
)

// Inside is what a room's function finds.
type Inside struct {
	Mapped bool
	Arg    []byte
	Files  []*os.File
	Host   uint64 // inode of the parent's mount namespace
}

// Main runs the tests, or what a room runs if this process is one. Every package that calls Run calls it in TestMain.
func Main(m *testing.M, rooms map[string]func(Inside) error) {
	if os.Getenv(envStage) != "" {
		os.Exit(stage())
	}
	name := os.Getenv(envRoom)
	if name == "" {
		os.Exit(m.Run())
	}
	in, err := enter()
	if err == nil {
		err = rooms[name](in)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "room:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// request is what the parent sends on standard input.
type request struct {
	Mapped bool
	Arg    json.RawMessage
	Files  int
}

// enter checks that this process is a room, whatever its environment says.
func enter() (Inside, error) {
	host, err := strconv.ParseUint(os.Getenv(envParent), 10, 64)
	own := MountNS()
	if err != nil || os.Getpid() != 1 || own == 0 || own == host {
		return Inside{}, fmt.Errorf("refused: process %d, namespace %d, parent's %d", os.Getpid(), own, host)
	}
	var r request
	if err := json.NewDecoder(os.Stdin).Decode(&r); err != nil {
		return Inside{}, err
	}
	in := Inside{Mapped: r.Mapped, Arg: r.Arg, Host: host}
	for i := range r.Files {
		syscall.CloseOnExec(3 + i)
		in.Files = append(in.Files, os.NewFile(uintptr(3+i), "handed"))
	}
	return in, nil
}

// MountNS returns the inode of this process's mount namespace, 0 if it cannot be told.
func MountNS() uint64 {
	var st unix.Stat_t
	if unix.Stat("/proc/self/ns/mnt", &st) != nil {
		return 0
	}
	return st.Ino
}

const namespaces = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET |
	syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS

// Mapped runs a function of Main's in a room with ids of its own, and returns what it printed and how it ended. The files
// become Inside.Files.
func Mapped(t *testing.T, name string, arg any, files ...*os.File) (string, error) {
	t.Helper()
	notInside(t)
	if os.Getuid() != 0 {
		t.Skip("needs root, to map ids")
	}
	cmd := command(t, name)
	cmd.SysProcAttr = mapped()
	return run(t, cmd, MappedBase+StepID, request{Mapped: true}, arg, files)
}

// notInside skips a test that runs within a job: what confines that lets nothing make namespaces.
func notInside(t *testing.T) {
	t.Helper()
	if os.Getenv("FORGEYARD_ATTEMPT_ID") != "" {
		t.Skip("no sandbox can be made inside of one")
	}
}

func mapped() *syscall.SysProcAttr {
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: MappedBase, Size: 65536}}
	return &syscall.SysProcAttr{
		Cloneflags: namespaces, UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		Credential: &syscall.Credential{Uid: 0, Gid: 0},
		Pdeathsig:  syscall.SIGKILL,
	}
}

// Rootless runs it in a room of a user without rights, who is StepID there. With folders, their mounts become Inside.Files.
func Rootless(t *testing.T, name string, arg any, folders ...string) (string, error) {
	t.Helper()
	notInside(t)
	cmd := command(t, name)
	names, err := json.Marshal(folders)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, envStage+"="+string(names))
	id := os.Getuid()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if id == 0 {
		id = loneID
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: loneID, Gid: loneID}
	}
	own := []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: 1}}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS
	cmd.SysProcAttr.UidMappings, cmd.SysProcAttr.GidMappings = own, own
	if os.Getuid() == 0 {
		own[0] = syscall.SysProcIDMap{ContainerID: loneID, HostID: loneID, Size: 1}
	}
	cmd.SysProcAttr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN}
	return run(t, cmd, loneID, request{Files: len(folders)}, arg, nil)
}

// Folder gives a rootless room's user a folder of the host.
func Folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "room")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if os.Getuid() == 0 {
		if err := os.Chown(dir, loneID, loneID); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// stage stands in for the launcher of a rootless room: it has rights over its own namespaces only, and clones the room.
func stage() int {
	var folders []string
	if err := json.Unmarshal([]byte(os.Getenv(envStage)), &folders); err != nil {
		return 2
	}
	os.Unsetenv(envStage)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", envParent, MountNS()))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	for _, folder := range folders {
		f, err := Detached(folder)
		if err != nil {
			fmt.Fprintln(os.Stderr, "stage:", err)
			return 2
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	id := []syscall.SysProcIDMap{{ContainerID: StepID, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: namespaces, UidMappings: id, GidMappings: id, Pdeathsig: syscall.SIGKILL,
		AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_NET_ADMIN},
	}
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "stage:", err)
		return 1
	}
	return 0
}

// Detached opens the mounts at a folder, attached nowhere, as the launcher does.
func Detached(folder string) (*os.File, error) {
	fd, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, fmt.Errorf("copy the mounts at %s: %w", folder, err)
	}
	return os.NewFile(uintptr(fd), folder), nil
}

func command(t *testing.T, name string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "/proc/self/exe")
	cmd.Env = []string{envRoom + "=" + name, fmt.Sprintf("%s=%d", envParent, MountNS()), "PATH=" + os.Getenv("PATH")}
	return cmd
}

func run(t *testing.T, cmd *exec.Cmd, owner int, r request, arg any, files []*os.File) (string, error) {
	t.Helper()
	var err error
	if r.Arg, err = json.Marshal(arg); err != nil {
		t.Fatal(err)
	}
	if len(files) > 0 {
		r.Files = len(files)
	}
	in, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, cmd.ExtraFiles = bytes.NewReader(in), files
	return printed(t, cmd, owner)
}

// printed runs a command and returns what it printed, on a pipe that belongs to whom it runs for: /dev/stdout can be opened
// by nobody else.
func printed(t *testing.T, cmd *exec.Cmd, owner int) (string, error) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	if os.Getuid() == 0 {
		err = write.Chown(owner, owner)
	}
	cmd.Stdout, cmd.Stderr = write, write
	err = errors.Join(err, cmd.Start(), write.Close())
	if err != nil {
		t.Fatal(err)
	}
	out, err := io.ReadAll(read)
	return string(out), errors.Join(err, cmd.Wait())
}

// Attempt runs a room of a kind on an attempt's folder: as root the folder is the mapped step's, and comes as a mount that
// is attached nowhere behind what open hands over, which it closes; without root it is the room's as it is.
func Attempt(t *testing.T, room string, mapped bool, arg any, dir string, open func() ([]*os.File, error)) (string, error) {
	t.Helper()
	if !mapped {
		return Rootless(t, room, arg, dir)
	}
	if err := os.Chown(dir, MappedBase+StepID, MappedBase+StepID); err != nil {
		t.Skip("needs root, to map ids:", err)
	}
	files, err := open()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := Detached(dir)
	if err != nil {
		t.Fatal(err)
	}
	files = append(files, folder)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	return Mapped(t, room, arg, files...)
}
