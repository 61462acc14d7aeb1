package cgroup_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/forgeyard/forgeyard/internal/sandbox/cgroup"
)

// asVictim makes this binary a victim of the named kind, with an argument behind a colon.
const asVictim = "FORGEYARD_CGROUP_VICTIM"

// victims are what runs in the groups. Each waits for a line on its stdin first, so that it
// can be put into its group before it does anything. They fork without the Go runtime, whose
// threads would count as well.
var victims = map[string]func(arg int) int{
	"eat":     eat,
	"swallow": swallow,
	"post":    post,
	"fork":    forkMany,
	"spin":    spin,
	"herd":    herd,
	"wait":    func(int) int { hang(); return 0 },
	"abandon": abandon,
	"report":  report,
}

// beVictim runs a victim and does not return, if this process is one.
func beVictim() {
	kind, arg, _ := strings.Cut(os.Getenv(asVictim), ":")
	if kind == "" {
		return
	}
	n, _ := strconv.Atoi(arg)
	fmt.Println("here")
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		os.Exit(3) // The test has ended before it began.
	}
	os.Exit(victims[kind](n))
}

// eat touches a number of MiB.
func eat(mib int) int {
	var held [][]byte
	for range mib {
		piece := make([]byte, 1<<20)
		for i := 0; i < len(piece); i += 4096 {
			piece[i] = 1
		}
		held = append(held, piece)
	}
	fmt.Println("ate", len(held))
	return 0
}

// swallow lets a child eat and ends well, whatever becomes of the child.
func swallow(mib int) int {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=eat:%d", asVictim, mib))
	cmd.Stdin = strings.NewReader("\n")
	err := cmd.Run()
	fmt.Println("swallowed", err)
	return 0
}

// post writes a number of MiB to sockets of its own, and says how many wait in them.
func post(mib int) int {
	piece, arrived := make([]byte, 32<<10), 0
	for range mib * 8 { // 128 KiB into each
		r, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			break
		}
		defer r.Close()
		for range 4 {
			_, _ = r.WriteTo(piece, r.LocalAddr()) // what does not fit is lost
		}
		raw, err := r.SyscallConn()
		if err != nil {
			break
		}
		_ = raw.Control(func(fd uintptr) {
			var info [16]uint32 // sk_meminfo: the first is what waits
			size := uint32(len(info) * 4)
			_, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, fd, unix.SOL_SOCKET, unix.SO_MEMINFO,
				uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
			if errno == 0 {
				arrived += int(info[0])
			}
		})
	}
	fmt.Println("waiting", arrived>>20)
	return 0
}

// forkMany tries to have a number of children at once, says how many it got, and hangs.
func forkMany(children int) int {
	got := 0
	for range children {
		pid := fork()
		if pid == 0 {
			hang()
		}
		if pid > 0 {
			got++
		}
	}
	fmt.Println("children", got)
	hang()
	return 0
}

// spin uses a processor for ever.
func spin(int) int {
	for n := uint64(1); ; n++ {
		if n == 0 {
			return 0 // In some hundred years.
		}
	}
}

// herd is what is hard to kill: children that are stopped, that ignore what can be ignored,
// and that are never there for long because each is replaced by its own child.
func herd(each int) int {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	for range each {
		if fork() == 0 {
			_, _, _ = syscall.RawSyscall(unix.SYS_KILL, ownPid(), uintptr(unix.SIGSTOP), 0)
			hang()
		}
		if fork() == 0 {
			for fork() <= 0 {
			}
			_, _, _ = syscall.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
		}
		if fork() == 0 {
			hang()
		}
	}
	fmt.Println("herd")
	hang()
	return 0
}

// fork is the bare system call: the child may make none but bare calls.
func fork() int {
	pid, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if errno != 0 {
		return -1
	}
	return int(pid)
}

// ownPid is the bare call: the runtime's answer may be the parent's.
func ownPid() uintptr {
	pid, _, _ := syscall.RawSyscall(unix.SYS_GETPID, 0, 0, 0)
	return pid
}

// hang waits until it is killed.
func hang() {
	for {
		_, _, _ = syscall.RawSyscall6(unix.SYS_PPOLL, 0, 0, 0, 0, 0, 0)
	}
}

// abandon is an agent that makes a group with children in it and is then killed.
func abandon(int) int {
	tree, given := cgroup.Open(cgroup.Config{State: os.Getenv("STATE")})
	if tree == nil {
		fmt.Println("no", given.Memory.Why)
		return 1
	}
	g, err := tree.Make("left", cgroup.Limits{Pids: 100})
	if err != nil {
		fmt.Println("no", err)
		return 1
	}
	child := exec.Command("/proc/self/exe") // A bare fork would share the lock of this agent.
	child.Env, child.Stdin = append(os.Environ(), asVictim+"=wait"), strings.NewReader("\n")
	err = child.Start()
	if err == nil {
		err = g.Add(child.Process.Pid)
	}
	if err != nil {
		fmt.Println("no", err)
		return 1
	}
	fmt.Println("child", child.Process.Pid)
	hang()
	return 0
}

// report prints what Open says to this process.
func report(int) int {
	tree, given := cgroup.Open(cgroup.Config{State: os.Getenv("STATE")})
	told := struct {
		Tree   bool
		Report cgroup.Report
		Cgroup string
	}{Tree: tree != nil, Report: given}
	own, _ := os.ReadFile("/proc/self/cgroup")
	told.Cgroup = string(own)
	if err := json.NewEncoder(os.Stdout).Encode(told); err != nil {
		return 1
	}
	return 0
}

// victim is one of those processes, seen from its test.
type victim struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Scanner
}

// start starts a victim, which waits for begin.
func start(t *testing.T, kind string, arg int, change ...func(*exec.Cmd)) *victim {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s:%d", asVictim, kind, arg))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	for _, f := range change {
		f(cmd)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	v := &victim{t: t, cmd: cmd, in: in, lines: bufio.NewScanner(out)}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	v.says("here")
	return v
}

// startIn is start in a group, and lets go at once.
func startIn(t *testing.T, g *cgroup.Group, kind string, arg int) *victim {
	t.Helper()
	v := start(t, kind, arg)
	if err := g.Add(v.cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	v.begin()
	return v
}

// begin lets the victim do what it is for.
func (v *victim) begin() {
	v.t.Helper()
	if _, err := io.WriteString(v.in, "\n"); err != nil {
		v.t.Fatal(err)
	}
}

// says waits for a line that begins with a word, and answers the rest of it.
func (v *victim) says(word string) string {
	v.t.Helper()
	if !v.lines.Scan() {
		v.t.Fatalf("the victim ended before it said %q: %v", word, v.cmd.Wait())
	}
	rest, ok := strings.CutPrefix(v.lines.Text(), word)
	if !ok {
		v.t.Fatalf("the victim said %q, want %q", v.lines.Text(), word)
	}
	return strings.TrimSpace(rest)
}

// end waits for the victim and says how it ended.
func (v *victim) end() syscall.WaitStatus {
	_ = v.cmd.Wait()
	return v.cmd.ProcessState.Sys().(syscall.WaitStatus)
}
