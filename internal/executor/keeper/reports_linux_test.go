package keeper

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// socketPair is a keeper's end and its agent's.
func socketPair(t *testing.T) (keeper, agent *os.File) {
	t.Helper()
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	keeper, agent = os.NewFile(uintptr(pair[0]), "keeper"), os.NewFile(uintptr(pair[1]), "agent")
	t.Cleanup(func() { _, _ = keeper.Close(), agent.Close() })
	return keeper, agent
}

func TestReportsWaitForAnAgentThatDoesNotReadAndComeInOrder(t *testing.T) {
	const steps = 500
	keeper, agent := socketPair(t)
	out := newReports(keeper, 2*steps)
	long := strings.Repeat("x", 4<<10) // together more than the socket takes
	for i := range uint16(steps) {
		out.say(Report{Starting: &i})
		out.say(Report{Notice: long})
	}
	if out.queue == nil {
		t.Fatal("the socket took all of it")
	}
	closed := make(chan struct{})
	go func() { defer close(closed); out.close() }()
	m := newMessages(agent)
	for i := range uint16(steps) {
		var starting, notice Report
		if err := m.next(&starting); err != nil || starting.Starting == nil || *starting.Starting != i {
			t.Fatalf("report of step %d: %+v, %v", i, starting, err)
		}
		if err := m.next(&notice); err != nil || notice.Notice != long {
			t.Fatalf("notice of step %d: %d bytes, %v", i, len(notice.Notice), err)
		}
	}
	<-closed
}

func TestReportsForAnAgentThatHasGoneAreDropped(t *testing.T) {
	keeper, agent := socketPair(t)
	out := newReports(keeper, 1)
	if err := agent.Close(); err != nil {
		t.Fatal(err)
	}
	for range 10 {
		out.say(Report{Ready: true})
	}
	out.close()
	if !out.gone || out.queue != nil {
		t.Errorf("%+v", out)
	}
}
