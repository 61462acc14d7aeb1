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
	f.world(t).run("logs", "--search", "Error: x", "-i", attemptID).want(t, 0, "an error: x\r\n\xff Error: x\n", "")
	f.world(t).run("logs", "--search", "nowhere", attemptID).want(t, 1, "", `no line of the log has "nowhere"`)
	f.world(t).run("logs", "--search", "x", "-f", attemptID).want(t, 64, "", "leave out --follow")
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
