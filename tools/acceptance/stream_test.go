package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const testModule = "github.com/forgeyard/forgeyard"

// TestStreamsReadAsPrinted reads streams that the go command printed, and
// compares all that a developer is shown with a golden file.
func TestStreamsReadAsPrinted(t *testing.T) {
	streams, err := filepath.Glob("testdata/streams/*.json")
	if err != nil || len(streams) == 0 {
		t.Fatalf("no streams: %v", err)
	}
	for _, stream := range streams {
		t.Run(strings.TrimSuffix(filepath.Base(stream), ".json"), func(t *testing.T) {
			var out bytes.Buffer
			status := run([]string{"-tsv", "", stream}, nil, &out, io.Discard)
			fmt.Fprintf(&out, "exit status %d\n", status)
			golden := strings.TrimSuffix(stream, ".json") + ".golden"
			if *update {
				if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), out.String()); diff != "" {
				t.Errorf("want -, got +; after a look run with -update:\n%s", diff)
			}
		})
	}
}

// collect feeds text to a collector that watches nothing.
func collect(t *testing.T, text string, rows ...row) (*collector, string) {
	t.Helper()
	var out bytes.Buffer
	c := newCollector(&out, testModule, rows)
	if err := c.read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	return c, out.String()
}

// events writes a stream for package internal/p: "action Test" each.
func events(actions ...string) string {
	var b strings.Builder
	for _, action := range actions {
		action, test, _ := strings.Cut(action, " ")
		fmt.Fprintf(&b, `{"Action":%q,"Package":"%s/internal/p","Test":%q}`+"\n", action, testModule, test)
	}
	return b.String()
}

func TestPassedAndFailedCountTopLevelTests(t *testing.T) {
	c, _ := collect(t, events(
		"start", "run TestA", "run TestA/x", "pass TestA/x", "run TestA/y", "pass TestA/y", "pass TestA",
		"run TestB", "run TestB/x", "fail TestB/x", "fail TestB", "run TestC", "run TestC/x", "skip TestC/x", "pass TestC",
		"run FuzzD", "run FuzzD/seed#0", "pass FuzzD/seed#0", "pass FuzzD", "fail"))
	if c.passed != 3 || c.failed != 1 || c.skipped != 1 {
		t.Errorf("got %d passed, %d failed, %d skipped, want 3, 1, 1", c.passed, c.failed, c.skipped)
	}
}

func TestAFailureStaysWhenTheTestPassesLater(t *testing.T) {
	r := row{pkg: "internal/p", test: "TestA"}
	for _, order := range [][]string{
		{"start", "run TestA", "fail TestA", "run TestA", "pass TestA", "fail"},
		{"start", "run TestA", "pass TestA", "run TestA", "fail TestA", "fail"},
	} {
		c, _ := collect(t, events(order...), r)
		if got := c.watched[testKey{"internal/p", "TestA"}]; got != failed {
			t.Errorf("%v: outcome %d, want failed", order, got)
		}
	}
}

func TestSubtestFailuresAreToldOnce(t *testing.T) {
	_, out := collect(t, events("start", "run TestA", "run TestA/a/b", "fail TestA/a/b", "fail TestA", "fail"))
	if strings.Contains(out, "FAIL internal/p TestA (") {
		t.Errorf("the parent with nothing to add is printed too:\n%s", out)
	}
	if !strings.Contains(out, "FAIL internal/p TestA/a/b") {
		t.Errorf("the subtest is not printed:\n%s", out)
	}
}

// An endless reader prints output of running tests until it has printed limit bytes.
type endless struct {
	tests   int
	limit   int
	printed int
	rest    []byte
}

func (e *endless) Read(p []byte) (int, error) {
	if len(e.rest) == 0 {
		if e.printed >= e.limit {
			return 0, io.EOF
		}
		e.rest = fmt.Appendf(nil, `{"Action":"output","Package":"m/p","Test":"Test%d","Output":"%s\n"}`+"\n",
			e.printed%e.tests, strings.Repeat("x", 4000))
		e.printed += len(e.rest)
	}
	n := copy(p, e.rest)
	e.rest = e.rest[n:]
	return n, nil
}

func TestMemoryIsBoundedWhateverRunningTestsPrint(t *testing.T) {
	var out bytes.Buffer
	c := newCollector(&out, "m", nil)
	kept := 0
	// One call of read would end the package; the bound is on what it holds before.
	source := &endless{tests: 997, limit: 48 << 20}
	buffer := make([]byte, 8<<10)
	for {
		n, err := source.Read(buffer)
		if err != nil {
			break
		}
		c.line(bytes.TrimSpace(buffer[:n]))
		size := 0
		if p := c.packages["m/p"]; p != nil {
			size = p.kept
		}
		kept = max(kept, size)
	}
	if most := maxLiveOutput + maxEvent; kept > most {
		t.Errorf("kept %d bytes of running tests, more than %d", kept, most)
	}
	if kept == 0 {
		t.Error("nothing was kept: the test tests nothing")
	}
}

func TestLinesPastTheBoundAreRefused(t *testing.T) {
	for _, test := range []struct {
		name string
		size int
		ok   bool
	}{{"at the bound", maxEvent, true}, {"one past it", maxEvent + 1, false}} {
		t.Run(test.name, func(t *testing.T) {
			c := newCollector(io.Discard, "m", nil)
			err := c.read(strings.NewReader(strings.Repeat("x", test.size-1) + "\n"))
			if (err == nil) != test.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestStrayLinesAndSkipsAreListedUpToTheirBounds(t *testing.T) {
	var stream strings.Builder
	stream.WriteString(strings.Repeat("go: finding a module\n", maxStray+7))
	stream.WriteString(events("start"))
	for i := range maxSkips + 3 {
		stream.WriteString(events(fmt.Sprintf("skip Test%d", i)))
	}
	stream.WriteString(events("pass"))
	var out bytes.Buffer
	if status := run([]string{"-tsv", ""}, strings.NewReader(stream.String()), &out, io.Discard); status != exitHeld {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{"(7 more lines", "(3 more skipped)", "\n0 passed, 0 failed, 1003 skipped\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing", want)
		}
	}
}

func TestClipKeepsBothEnds(t *testing.T) {
	var c clip
	size := 0
	for i := range 100_000 {
		size += c.add(fmt.Sprintf("line %d\n", i))
	}
	if size != c.size() || size > clipHead+2*clipTail {
		t.Errorf("size %d told, %d held, at most %d allowed", size, c.size(), clipHead+2*clipTail)
	}
	text := c.String()
	if !strings.HasPrefix(text, "line 0\n") || !strings.HasSuffix(text, "line 99999\n") || !strings.Contains(text, "bytes left out") {
		t.Errorf("%.40q … %.40q", text, text[len(text)-40:])
	}
	var short clip
	short.add("all of it\n")
	if short.String() != "all of it\n" {
		t.Errorf("got %q", short.String())
	}
}
