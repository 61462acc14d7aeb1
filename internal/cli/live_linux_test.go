package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/display/emulator"
	"github.com/forgeyard/forgeyard/internal/program"
)

// A person sits at a terminal of the kernel and sees what is shown there.
type person struct{ *emulator.Seat }

func sit(t *testing.T, width, height int) person {
	t.Helper()
	seat, err := emulator.Sit(width, height)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		t.Skip("there are no terminals here: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = seat.Close() })
	return person{seat}
}

// sees waits until the screen is as it should be.
func (p person) sees(t *testing.T, what string, ok func(screen []string) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Until(ctx, what, ok); err != nil {
		t.Error(err)
	}
}

// try runs a command at the terminal.
func (p person) try(w *world, args ...string) error {
	return cli.Main(w.ctx, nil, cli.Env{
		Stdin: p.Program, Stdout: p.Program, Stderr: p.Program, Version: "1.2.3", Local: w.local,
		Getenv: func(name string) string { return w.env[name] },
	}, args)
}

// run runs a command at the terminal, and returns its code and everything that stays there.
func (p person) run(t *testing.T, w *world, args ...string) (code int, all []string) {
	t.Helper()
	err := p.try(w, args...)
	var exit *program.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.Err != nil) {
		t.Errorf("%v", err)
	}
	_, _ = p.Program.WriteString("the end\n")
	p.sees(t, "the end", func(screen []string) bool { return len(screen) > 0 && screen[len(screen)-1] == "the end" })
	p.With(func(e *emulator.Emulator) {
		if wrong := e.Wrong(); len(wrong) > 0 {
			t.Errorf("the terminal got %q", wrong)
		}
		if !e.Wraps() {
			t.Error("lines of who comes next do not wrap")
		}
		all = e.All()
	})
	return program.Code(err), all[:len(all)-1]
}

func pipelineWorld(t *testing.T, f *fake) *world {
	t.Helper()
	if err := os.WriteFile(".forgeyard.yml", []byte("version: 1\njobs: { a: { source: false, steps: [x] } }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f.on("POST /cas:missing", func(*http.Request) any { yes := true; return &api.MissingAnswer{Complete: &yes} })
	return f.world(t)
}

// last returns the last lines of the screen.
func last(screen []string, n int) []string { return screen[max(0, len(screen)-n):] }

func TestATerminalShowsTheJobsBelowTheirLogs(t *testing.T) {
	f := newFake(t)
	l := f.legRun("lint", "test/1.25", "test/1.26")
	w, p := pipelineWorld(t, f), sit(t, 100, 12)
	done := make(chan struct{})
	var code int
	var all []string
	go func() {
		defer close(done)
		code, all = p.run(t, w, "run")
	}()
	l.becomes(0, "Active", nil)
	l.says(0, api.EventStepStarted, api.LogStep{Step: 0, Name: "build"})
	l.writes(0, "::group::Set up\n\x1b[31mred\nstill\x1b[0m\n::endgroup::\n10%\r20%")
	p.sees(t, "a line under way beside its job", func(screen []string) bool {
		s := strings.Join(last(screen, 4), "\n")
		return strings.Contains(s, "● lint") && strings.Contains(s, "1/2 build: 20%") && strings.Contains(s, "○ test (1.25)         needs lint")
	})
	l.writes(0, "\r100%\n::warning file=a.go,line=7::odd\n")
	l.logEnds(0, "")
	p.sees(t, "the end of a log", func(screen []string) bool { return slices.Contains(screen, "lint        | ✓ build (1.5s)") })
	l.jobEnds(0, "")
	for i := 1; i <= 2; i++ {
		l.becomes(i, "Active", nil)
		l.says(i, api.EventStepStarted, api.LogStep{Step: 1})
	}
	for i := range 30 {
		l.writes(1, fmt.Sprintf("line %d\n", i+1))
	}
	l.writes(1, "\x1b]0;pwned\x07\x1b[2J\x1b[1;1H::error file=x.go,line=7::boom\nno end")
	l.ends(1, "its last attempt failed: it ended with exit code 3, in step 2")
	p.sees(t, "a job that failed in the block", func(screen []string) bool {
		s := strings.Join(last(screen, 4), "\n")
		return strings.Contains(s, "✓ lint") && strings.Contains(s, "✗ test (1.25)    12s  it ended with exit code 3, in step 2") &&
			strings.Contains(s, "3 jobs: 1 failed, 1 running, 1 succeeded") && strings.Contains(s, "Ctrl-C cancels")
	})
	l.ends(2, "")
	l.over("Failed", 1)
	<-done
	want := []string{
		"run " + runID,
		"lint        | ── 1/2 build", "lint        | ▾ Set up", "lint        |   red", "lint        |   still", "lint        | 100%",
		"lint        | warning: a.go:7: odd", "lint        | ✓ build (1.5s)", "lint: succeeded (12s)",
	}
	if diff := cmp.Diff(want, all[:min(len(want), len(all))]); diff != "" || code != 1 {
		t.Errorf("code %d, %s", code, diff)
	}
	i := slices.Index(all, "✗ test (1.25), step make test: it ended with exit code 3, in step 2")
	if i < 0 {
		t.Fatalf("the failure is not told again:\n%s", strings.Join(all, "\n"))
	}
	want = []string{"│ …"}
	for k := 13; k <= 30; k++ {
		want = append(want, fmt.Sprintf("│ line %d", k))
	}
	want = append(want, "│ error: x.go:7: boom", "│ no end", "all of it: forgeyard logs "+l.id(1), "", "Remarks:",
		"error: x.go:7: boom [test (1.25)]", "warning: a.go:7: odd [lint]", "", "run Failed: a job failed")
	if diff := cmp.Diff(want, all[i+1:]); diff != "" {
		t.Error(diff)
	}
}

func TestANarrowAndLowTerminalIsEnough(t *testing.T) {
	for size, jobs := range map[[2]int]int{{40, 10}: 256, {40, 3}: 20, {20, 24}: 20, {9, 2}: 20} {
		f := newFake(t)
		var keys []string
		for i := range jobs {
			keys = append(keys, fmt.Sprintf("test/leg %d", i))
		}
		l := f.legRun(keys...)
		w, p := pipelineWorld(t, f), sit(t, size[0], size[1])
		for i := range jobs {
			l.becomes(i, "Active", nil)
			l.says(i, api.EventStepStarted, api.LogStep{Step: 0, Name: "build"})
			l.writes(i, fmt.Sprintf("I am %d, and this is a line that is longer than the terminal is wide\n", i))
			l.ends(i, "")
		}
		l.over("Succeeded", 0)
		code, all := p.run(t, w, "run")
		if code != 0 {
			t.Errorf("%v: code %d", size, code)
		}
		for i := range jobs {
			count := 0
			for _, line := range all {
				if strings.HasSuffix(line, fmt.Sprintf("| I am %d, and this is a line that is longer than the terminal is wide", i)) {
					count++
				}
			}
			if count != 1 {
				t.Errorf("%v: the line of job %d is there %d times", size, i, count)
			}
		}
		for _, line := range all {
			if strings.Contains(line, "jobs:") || strings.Contains(line, "more:") {
				t.Errorf("%v: something of the block stays: %q", size, line)
			}
		}
	}
}

func TestASingleJobIsShownWithoutPrefix(t *testing.T) {
	f := newFake(t)
	f.story("Failed", 1, event(1, api.EventOutput, api.OutputOf(1, "stdout", nil, []byte("one\ntw"))),
		event(2, api.EventOutput, api.OutputOf(2, "stderr", nil, []byte("err\n"))),
		event(3, api.EventOutput, api.OutputOf(3, "stdout", nil, []byte("o\x1b[2J"))))
	p := sit(t, 80, 24)
	code, all := p.run(t, f.world(t), "run", "--source", "none", "--", "make")
	if diff := cmp.Diff([]string{"run " + runID, "one", "err", "two", "run Failed"}, all); diff != "" || code != 1 {
		t.Errorf("code %d, %s", code, diff)
	}
}

func TestRawOutputIsNotTakenApart(t *testing.T) {
	f := newFake(t)
	f.story("Succeeded", 0, event(1, api.EventOutput, api.OutputOf(1, "stdout", nil, []byte("\x1b[31mone\rtwo\x1b[0m\n"))))
	p := sit(t, 80, 24)
	if _, all := p.run(t, f.world(t), "run", "--raw", "--", "make"); !slices.Contains(all, "two") {
		t.Errorf("%q", all)
	}
}

func TestJSONOnATerminalIsOneEventALine(t *testing.T) {
	f := newFake(t)
	l := f.legRun("lint", "test/1.25")
	w, p := pipelineWorld(t, f), sit(t, 4000, 24)
	for i := range 2 {
		l.becomes(i, "Active", nil)
		l.writes(i, "out\n")
		l.ends(i, "")
	}
	l.over("Succeeded", 0)
	_, all := p.run(t, w, "run", "-o", "json")
	seen := map[string]int{}
	for _, line := range all[1:] { // the first is the run's id
		var e struct{ Name, Job, Attempt string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if e.Name == "output" && (e.Attempt == "" || e.Job == "") {
			t.Errorf("whose output is %s", line)
		}
		seen[e.Name]++
	}
	if diff := cmp.Diff(map[string]int{"job": 2, "output": 2, "step_finished": 2, "end": 2, "run": 1}, seen); diff != "" {
		t.Error(diff)
	}
}

// The answer of the daemon waits for the person to have seen how far the capture is.
func TestACaptureThatTakesLongShowsHowFarItIs(t *testing.T) {
	f := newFake(t)
	l := f.legRun("a")
	w, p := pipelineWorld(t, f), sit(t, 90, 12)
	if err := os.WriteFile("data", make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	f.on("POST /cas:missing", func(*http.Request) any {
		<-seen
		yes := true
		return &api.MissingAnswer{Complete: &yes}
	})
	l.over("Succeeded", 0)
	done := make(chan struct{})
	var all []string
	go func() {
		defer close(done)
		_, all = p.run(t, w, "run")
	}()
	p.sees(t, "how far the capture is", func(screen []string) bool {
		return len(screen) > 0 && strings.HasPrefix(screen[len(screen)-1], "source: 2 files, 3.0 MiB read, 0 new files of 0 B sent (")
	})
	close(seen)
	<-done
	for _, line := range all {
		if strings.HasPrefix(line, "source:") {
			t.Errorf("it stays: %q", line)
		}
	}
}

// A slowStart is a Local whose daemon and agent are ready when a channel is closed.
type slowStart struct {
	nobody
	ready    chan struct{}
	endpoint string
	err      error // they do not come up
}

func (s slowStart) Run(ctx, _ context.Context, _ cli.LocalOptions, use func(context.Context, string) error) error {
	<-s.ready
	if s.err != nil {
		return s.err
	}
	return use(ctx, s.endpoint)
}

func TestAPersonIsToldThatADaemonStarts(t *testing.T) {
	for _, failed := range []error{nil, errors.New("no room")} {
		f := newFake(t)
		l := f.legRun("a")
		l.over("Succeeded", 0)
		w, p := pipelineWorld(t, f), sit(t, 90, 12)
		delete(w.env, "FORGEYARD_SERVER")
		local := slowStart{ready: make(chan struct{}), endpoint: f.server.URL, err: failed}
		w.local = local
		done := make(chan struct{})
		var all []string
		go func() {
			defer close(done)
			if failed == nil {
				_, all = p.run(t, w, "run", "--source", "none")
				return
			}
			if code := program.Code(p.try(w, "run", "--source", "none")); code != program.CodeInfrastructure {
				t.Errorf("code %d", code)
			}
		}()
		p.sees(t, "that a daemon starts", func(screen []string) bool {
			return len(screen) > 0 && strings.HasPrefix(screen[len(screen)-1], "starting a daemon and an agent in this process (")
		})
		close(local.ready)
		<-done
		p.sees(t, "a screen without that", func(screen []string) bool { return !strings.Contains(strings.Join(screen, "\n"), "starting") })
		if strings.Contains(strings.Join(all, "\n"), "starting") {
			t.Errorf("it stays: %q", all)
		}
	}
}

func TestARunIsWatchedOnATerminalAsItIsRun(t *testing.T) {
	for _, args := range [][]string{{"runs", "watch", runID}, {"logs", "-f", runID}} {
		f := newFake(t)
		l := f.legRun("lint", "test/1.25")
		w, p := f.world(t), sit(t, 90, 12)
		done := make(chan struct{})
		var code int
		var all []string
		go func() {
			defer close(done)
			code, all = p.run(t, w, args...)
		}()
		l.becomes(0, "Active", nil)
		l.says(0, api.EventStepStarted, api.LogStep{Step: 0, Name: "build"})
		p.sees(t, "what Ctrl-C does", func(screen []string) bool {
			return len(screen) > 0 && strings.HasSuffix(screen[len(screen)-1], "Ctrl-C leaves the run alone")
		})
		l.writes(0, "out\n")
		l.ends(0, "")
		l.becomes(1, "Active", nil)
		l.ends(1, "")
		l.over("Succeeded", 0)
		<-done
		if code != 0 || !slices.Contains(all, "lint        | out") || !slices.Contains(all, "test (1.25): succeeded (12s)") {
			t.Errorf("%q: code %d:\n%s", args, code, strings.Join(all, "\n"))
		}
		if f.asked("POST /runs/" + runID + ":cancel") {
			t.Errorf("%q: the run was cancelled", args)
		}
	}
}
