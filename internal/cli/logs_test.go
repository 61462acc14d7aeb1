package cli_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
)

func TestAGapSaysHowMuchIsMissingAndALagThatNothingIs(t *testing.T) {
	f := newFake(t)
	f.story("Succeeded", 0,
		event(1, api.EventOutput, api.OutputOf(1, "stdout", nil, []byte("head\n"))),
		event(2, api.EventLag, api.LogLag{Seq: 1, Frames: 90, Bytes: 5 << 20}),
		event(3, api.EventLag, api.LogLag{Seq: 1, Frames: 80, Bytes: 4 << 20}),
		event(4, api.EventLag, api.LogLag{Seq: 1}),
		event(5, api.EventGap, api.LogGap{Bytes: 209_715, Why: "more output than the log may have"}))
	f.on("GET /attempts/{id}", func(*http.Request) any { return &api.Attempt{ID: attemptID} })
	f.world(t).run("logs", "-f", attemptID).want(t, 0, "head\n", "[this is about 5 MiB behind the log; nothing of it is left out]\n"+
		"[this has caught up with the log]\n[209715 bytes of output are missing here: more output than the log may have]\n")
}

func TestASearchGoesOnUntilNothingIsLeft(t *testing.T) {
	f := newFake(t)
	f.on("GET /attempts/{id}", func(*http.Request) any { return &api.Attempt{ID: attemptID} })
	f.on("GET /attempts/{id}/log", func(r *http.Request) any {
		q := r.URL.Query()
		if q.Get("q") != "Error: x" || q.Get("ignore_case") != "true" {
			return &api.LogMatches{}
		}
		page := &api.LogMatches{Items: []api.LogMatch{{LogOutput: api.OutputOf(7, "stdout", nil, []byte("an error: x\r"))}}, Next: "7.0", More: true}
		if q.Get("after") == "7.0" {
			page = &api.LogMatches{Items: []api.LogMatch{{LogOutput: api.OutputOf(9, "stderr", nil, []byte("\xff Error: x"))}}}
		}
		return page
	})
	f.world(t).run("logs", "--grep", "Error: x", "-i", attemptID).want(t, 0, "an error: x\r\n\xff Error: x\n", "")
	f.world(t).run("logs", "--search", "nowhere", attemptID).want(t, 1, "", `no line of the log has "nowhere"`)
	f.world(t).run("logs", "--grep", "x", "-f", attemptID).want(t, 64, "", "leave out --follow")
}

// manyLogs is a run of three jobs: one that failed in its second step, one that went well, and one that never began.
func manyLogs(t *testing.T) *fake {
	f := newFake(t)
	const bad, well, never = "01JJ0B00000000000000000001", "01JJ0B00000000000000000002", "01JJ0B00000000000000000003"
	one, zero := 1, 0
	jobs := []api.Job{
		{ID: bad, Run: runID, Key: "test", State: "Failed", Ended: true, AllAttempts: []api.Attempt{{ID: "01JATT00000000000000000001", Job: bad, Number: 1, Ended: true, Class: "ExitCode", ExitCode: &one, Steps: []api.StepResult{
			{Index: 0, Name: "setup", Class: "Succeeded", ExitCode: &zero}, {Index: 1, Name: "unit", Class: "ExitCode", ExitCode: &one},
		}}}},
		{ID: well, Run: runID, Key: "lint", State: "Succeeded", Ended: true, AllAttempts: []api.Attempt{{ID: "01JATT00000000000000000002", Job: well, Number: 1, Ended: true, Class: "Succeeded"}}},
		{ID: never, Run: runID, Key: "deploy", State: "Skipped", Ended: true},
	}
	run := &api.Run{ID: runID, Name: "ci", State: "Failed", Ended: true, Jobs: jobs}
	f.on("GET /runs", func(*http.Request) any {
		return &api.List[api.Run]{Items: []api.Run{{ID: runID, Name: "ci", State: "Failed"}}}
	})
	f.on("GET /runs/{id}", func(r *http.Request) any {
		if r.PathValue("id") != runID {
			return api.NewProblem(api.CodeNotFound, "no such run")
		}
		return run
	})
	f.on("GET /jobs/{id}", func(r *http.Request) any {
		for i := range jobs {
			if jobs[i].ID == r.PathValue("id") {
				return &jobs[i]
			}
		}
		return api.NewProblem(api.CodeNotFound, "no such job")
	})
	at := time.Date(2026, 11, 30, 12, 0, 1, 5_000_000, time.UTC)
	out := func(seq int, stream, text string) api.Event {
		return event(seq, api.EventOutput, api.OutputOf(uint64(seq), stream, &at, []byte(text)))
	}
	f.on("GET /attempts/{id}/log", func(r *http.Request) any {
		if r.PathValue("id") == "01JATT00000000000000000002" {
			return []api.Event{out(1, "stdout", "clean\n"), event(2, api.EventEnd, api.LogEnd{Attempt: jobs[1].AllAttempts[0], Complete: true})}
		}
		if r.URL.Query().Has("tail") {
			return []api.Event{out(6, "stdout", "FAIL two\n"), event(9, api.EventEnd, api.LogEnd{Attempt: jobs[0].AllAttempts[0], Complete: true})}
		}
		return []api.Event{
			event(1, api.EventStepStarted, api.LogStep{Seq: 1, Step: 0, Name: "setup"}),
			out(2, "stdout", "getting ready\n"),
			event(3, api.EventStepFinished, api.LogStep{Seq: 3, Step: 0, Name: "setup"}),
			event(4, api.EventStepStarted, api.LogStep{Seq: 4, Step: 1, Name: "unit"}),
			out(5, "stdout", "FAIL o"), out(6, "stderr", "a warn"), out(7, "stdout", "ne\nFAIL two\n"), out(8, "stderr", "ing"),
			event(9, api.EventStepFinished, api.LogStep{Seq: 9, Step: 1, Name: "unit"}),
			event(10, api.EventEnd, api.LogEnd{Attempt: jobs[0].AllAttempts[0], Complete: true}),
		}
	})
	return f
}

// Whole lines of several jobs stand behind their names, also where pieces of two streams came by turns.
func TestLogsOfARunAreThoseOfItsJobs(t *testing.T) {
	f := manyLogs(t)
	whole := "test | getting ready\ntest | FAIL one\ntest | FAIL two\ntest | a warning\nlint | clean\n"
	for _, args := range [][]string{{"logs"}, {"logs", runID}, {"logs", runID, "test", "lint"}} {
		r := f.world(t).run(args...)
		r.want(t, 0, whole, "")
		if told := strings.Contains(r.stderr, "the latest run: "+runID+", ci, Failed"); told != (len(args) == 1) {
			t.Errorf("%q: %s", args, r.stderr)
		}
	}
}

func TestLogsAreChosenByJobStepAndLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"lint"}, "clean\n"},
		{[]string{"01JJ0B00000000000000000002"}, "clean\n"},
		{[]string{"--failed"}, "FAIL o" + "a warn" + "ne\nFAIL two\n" + "ing"},
		{[]string{"test", "--step", "unit"}, "FAIL o" + "a warn" + "ne\nFAIL two\n" + "ing"},
		{[]string{"test", "--step", "1"}, "getting ready\n"},
		{[]string{"test", "--step", "2", "--tail", "1"}, "a warning\n"},
		{[]string{"test", "--step", "2", "--grep", "fail t", "-i"}, "FAIL two\n"},
		{[]string{"test", "--tail", "1"}, "FAIL two\n"},
		{[]string{"lint", "-t"}, "2026-11-30T12:00:01.005Z clean\n"},
		{[]string{runID, "--failed", "--grep", "two", "-t"}, "2026-11-30T12:00:01.005Z FAIL two\n"},
		{[]string{"test", "--raw", "--step", "setup"}, "getting ready\n"},
	} {
		r := manyLogs(t).world(t).run(append([]string{"logs"}, c.args...)...)
		if r.code != 0 || r.stdout != c.want {
			t.Errorf("%q: code %d\n%s\nwant %s\n%s", c.args, r.code, r.stdout, c.want, r.stderr)
		}
	}
}

func TestLogsSayWhatIsNotThere(t *testing.T) {
	f := manyLogs(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"tset"}, 64, `has no job "tset"; did you mean "test"?`},
		{[]string{runID, "compile"}, 64, "it has test, lint, deploy"},
		{[]string{"deploy"}, 1, "job deploy has no attempt yet"},
		{[]string{"test", "--attempt", "2"}, 1, "job test has no attempt 2; it has 1"},
		{[]string{"test", "--step", "unti"}, 64, `no step "unti" has begun`},
		{[]string{"test", "--step", "0"}, 64, "numbered from 1"},
		{[]string{"test", "--step", "unit", "--grep", "nowhere"}, 1, `no line of the log has "nowhere"`},
		{[]string{"lint", "--failed"}, 0, "no job of run " + runID + " has failed"},
		{[]string{"-f", "--step", "1"}, 64, "name one job: it has test, lint, deploy"},
		{[]string{"--raw", "-t"}, 64, "leave out --timestamps"},
		{[]string{"-i"}, 64, "write the text"},
	} {
		f.world(t).run(append([]string{"logs"}, c.args...)...).want(t, c.code, "", c.want)
	}
	r := f.world(t).run("logs", "test", "--grep", "two", "--step", "unit", "-o", "json")
	r.want(t, 0, `{"name":"output","data":{"seq":7,"stream":"stdout","at":"2026-11-30T12:00:01.005Z","text":"FAIL two"}}`+"\n", "")
}

// A raw log that breaks off goes on behind the last byte: what is printed is exact.
func TestARawLogThatBreaksOffGoesOn(t *testing.T) {
	f := newFake(t)
	f.on("GET /attempts/{id}", func(*http.Request) any { return &api.Attempt{ID: attemptID} })
	log := bytes.Repeat([]byte("\xff\x00a line\r\n"), 20_000)
	breaks := 0
	f.serve("GET /attempts/{id}/log", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", api.TypeRawLog)
		if breaks < 2 {
			w = &broken{w, 30_000}
			breaks++
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(log))
	})
	r := f.world(t).run("logs", "--raw", attemptID)
	if r.code != 0 || r.stdout != string(log) {
		t.Errorf("%d bytes of %d, code %d", len(r.stdout), len(log), r.code)
	}
	if !strings.Contains(r.stderr, "the log broke off") || strings.Count(r.stderr, "going on") != 1 {
		t.Errorf("told: %q", r.stderr)
	}
}

// broken is cut after some bytes.
type broken struct {
	http.ResponseWriter
	left int
}

func (b *broken) Write(p []byte) (int, error) {
	if len(p) > b.left {
		_, _ = b.ResponseWriter.Write(p[:b.left])
		_ = http.NewResponseController(b.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}
