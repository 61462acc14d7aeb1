package executortest

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"testing"
)

// Agent starts this test's executable as an agent with a task, which it finds as JSON in an environment variable, and waits
// until a step of it is ready. What it prints from then on comes on the channel. At the end of the test the agent is killed,
// and then left returns the processes that it has left behind, which fail the test and are killed too.
func Agent(tb testing.TB, variable string, task any, left func() []int) (*exec.Cmd, <-chan string) {
	tb.Helper()
	text, err := json.Marshal(task)
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), variable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	lines := make(chan string, 100)
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(out); in.Scan(); {
			lines <- in.Text()
		}
	}()
	tb.Cleanup(func() {
		_ = cmd.Process.Kill()
		for range lines { // until the agent has closed it
		}
		_ = cmd.Wait()
		for _, pid := range left() {
			tb.Errorf("process %d is left", pid)
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	})
	if line := <-lines; line != "ready" {
		tb.Fatalf("the agent says %q", line)
	}
	return cmd, lines
}
