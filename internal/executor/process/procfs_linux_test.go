package process

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// HeadlessVar makes a process of this test headless.
const HeadlessVar = "FORGEYARD_TEST_HEADLESS"

// Headless ends the calling thread alone, which is the first one, and sleeps in another.
func Headless() {
	runtime.LockOSThread()
	go func() {
		_, _ = os.Stdout.WriteString("ready\n")
		select {}
	}()
	_, _, _ = unix.RawSyscall(unix.SYS_EXIT, 0, 0, 0)
}

// A process looks like a zombie once its first thread has ended, and goes on in the others. Case B01.
func TestAProcessWithoutItsFirstThreadIsKilled(t *testing.T) {
	const mark = "mark-of-this-test"
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{HeadlessVar + "=1", envMark + "=" + mark}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill() }()
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	p := awaitHeadless(t, cmd.Process.Pid)
	if _, ok := p.hasMark(mark); !ok || !p.alive() {
		t.Errorf("mark seen: %v, alive: %v", ok, p.alive())
	}
	if killAll([]proc{p}) != 1 {
		t.Fatal("it was taken for dead")
	}
	_ = cmd.Wait() // whose error says that it was killed
	if p.alive() {
		t.Error("it lives")
	}
}

// awaitHeadless waits until the first thread is a zombie.
func awaitHeadless(t *testing.T, pid int) proc {
	t.Helper()
	for {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, pid))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(stat, []byte("State:\tZ")) {
			break
		}
		runtime.Gosched()
	}
	p, err := readProc(pid)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
