//go:build linux

package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/relay"
)

// peak is the most memory that a process has had, in bytes.
func (s *story) peak(pid int) int {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	s.must(err)
	_, rest, _ := strings.Cut(string(status), "\nVmHWM:")
	kib := 0
	_, err = fmt.Sscan(rest, &kib)
	s.must(err)
	return kib << 10
}

// awkward makes all that a log may hold: bytes that are no text, carriage returns, a line of 64 MiB, and no line end last.
const awkward = `{
	printf 'a\0b\r\n 1%%\r 2%%\r\n\377\376\303'
	head -c 300000 /dev/urandom
	printf '\n'
	head -c 67108864 /dev/zero | tr '\0' x
	printf '\nno end'
}`

// Cases B52, B53 and B58: every byte of a log that is awkward in all ways arrives, by each way of reading it, and neither daemon
// nor agent holds a long line in memory.
func TestALogThatIsAwkwardInAllWaysIsExactByEachWayOfReadingIt(t *testing.T) {
	s := newStory(t)
	agent := s.agent("one", 1, "")
	run, _ := s.shell(awkward+` | tee written; note sum "$(sha256sum <written)" >/dev/null`, func(spec *api.JobSpec) {
		size := api.Size(128 * forge.MiB)
		spec.LogLimit = &size
	})
	a := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	want := strings.Fields(s.file(s.path("sum")))[0]
	sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
	raw := s.log(a.ID)
	if sum(raw) != want {
		t.Errorf("the raw log of %d bytes is not what was written", len(raw))
	}
	for _, args := range [][]string{{"logs", a.ID}, {"logs", "--raw", a.ID}, {"logs", "-f", a.ID}} {
		out, errs, code, err := s.fleet.Run(s.ctx, args...)
		s.must(err)
		if code != 0 || sum(out) != want {
			t.Errorf("%v: %d bytes that are not what was written, code %d, %q", args, len(out), code, errs)
		}
	}
	if out, _, code, err := s.fleet.Run(s.ctx, "logs", "--tail", "1", a.ID); err != nil || code != 0 || out != "no end" {
		t.Errorf("the last line is %.40q, code %d, %v", out, code, err)
	}
	if out, _, code, err := s.fleet.Run(s.ctx, "logs", "--search", "O END", "-i", a.ID); err != nil || code != 0 || out != "no end\n" {
		t.Errorf("found %.40q, code %d, %v", out, code, err)
	}
	for name, pid := range map[string]int{"daemon": s.fleet.Daemon.PID(), "agent": agent.PID()} {
		if most := s.peak(pid); most > 256<<20 {
			t.Errorf("the %s had %d MiB", name, most>>20)
		}
	}
}

// Case B50: 215 MB against a declared limit of 4 MiB. Head and tail are kept, what is missing is counted in its place, and the job does
// not fail for it.
func TestOutputBeyondTheLimitIsCountedInItsPlace(t *testing.T) {
	const limit, written = 4 * forge.MiB, 10_000_000*8 + 15_000_000*9
	s := newStory(t)
	s.agent("one", 1, "")
	run, _ := s.shell(`seq -f %07.0f 0 24999999`, func(spec *api.JobSpec) {
		size := api.Size(limit)
		spec.LogLimit = &size
	})
	a := classOf(t, s.ended(run), "Succeeded", "Succeeded")
	raw := s.log(a.ID)
	head, tail := int(limit-limit/4), int(limit/4)
	if len(raw) <= head || len(raw) > int(limit) {
		t.Fatalf("%d bytes are kept, of a limit of %d", len(raw), limit)
	}
	for at := 0; at+8 <= head; at += 8 {
		if line := fmt.Sprintf("%07d\n", at/8); raw[at:at+8] != line {
			t.Fatalf("the head has %q and not %q", raw[at:at+8], line)
		}
	}
	if kept := len(raw) - head; kept > tail || kept < tail/2 || !strings.HasSuffix(raw, "\n24999998\n24999999\n") {
		t.Errorf("the tail has %d bytes and ends with %q", kept, raw[len(raw)-20:])
	}
	_, errs, code, err := s.fleet.Run(s.ctx, "logs", a.ID)
	s.must(err)
	if want := fmt.Sprintf("[%d bytes of output are missing here:", written-len(raw)); code != 0 || !strings.Contains(errs, want) {
		t.Errorf("code %d, told %q, want %q", code, errs, want)
	}
	if !strings.Contains(errs, "has reached its limit of 4 MiB") {
		t.Errorf("the limit is not told: %q", errs)
	}
}

// Case B39: a forced stop with a backlog of 50 MB behind a slow road ends at once, and the next process sends what is left, in
// order. The backlog does not shrink when it is compressed.
func TestAForcedStopWithABacklogKeepsItAndTheNextProcessSendsIt(t *testing.T) {
	const size = 50_000_000
	s := newStory(t)
	agent, road := s.relayed("one", 1)
	s.must(road.Set(relay.Settings{Rate: 128 << 10}))
	run, job := s.shell(fmt.Sprintf(`head -c %d /dev/urandom >written; note sum "$(sha256sum <written)" >/dev/null; cat written; note wrote yes >/dev/null; sleep 1000`, size),
		func(spec *api.JobSpec) { spec.Retry = &api.Retry{Infra: number(uint8(0))} })
	a := s.attempt(job, forge.AttemptRunning)
	s.file(s.path("wrote"))
	s.must(agent.Signal(syscall.SIGTERM))
	s.must(fleet.Await(s.ctx, "the agent to stop", func() (bool, error) { // two signals at once may be one
		said, err := os.ReadFile(agent.LogFile())
		return strings.Contains(string(said), `"ShuttingDown"`), err
	}))
	s.must(agent.Signal(syscall.SIGTERM))
	_, err := agent.Exited(s.ctx)
	s.must(err)
	if n := len(s.log(a.ID)); n > size/2 {
		t.Fatalf("%d bytes have come over a slow road already", n)
	}
	s.must(road.Set(relay.Settings{}))
	s.must(agent.Start())
	s.must(agent.AwaitOnline(s.ctx))
	s.ended(run)
	raw := ""
	s.must(fleet.Await(s.ctx, "the rest of the log", func() (bool, error) {
		raw = s.log(a.ID)
		return len(raw) >= size, nil
	}))
	if got := fmt.Sprintf("%x  -\n", sha256.Sum256([]byte(raw))); got != s.file(s.path("sum")) {
		t.Errorf("the %d bytes that arrived are not what was written", len(raw))
	}
}
