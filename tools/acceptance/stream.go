package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Bounds on what is kept of a stream, whatever its length.
const (
	maxEvent      = 1 << 20 // bytes of one line
	maxLiveOutput = 4 << 20 // bytes kept of the running tests of one package
	maxBuilds     = 256     // builds whose output is kept
	maxStray      = 100     // lines that are no events, shown
	maxSkips      = 1000    // skipped tests that are listed; all are counted
	maxReason     = 300     // bytes of a skip's reason
)

// An event is one line of "go test -json" (see "go doc test2json" and, for
// builds, "go help buildjson").
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64 // seconds
	ImportPath  string  // of a build
	FailedBuild string  // the ImportPath of the build that a package failed with
}

// An outcome is how a test ended. A worse one replaces a better one, as when
// a test runs several times.
type outcome int

const (
	unseen outcome = iota
	passed
	skipped
	failed
)

// A testKey names a test: the package below the module's root, and the name.
type testKey struct{ pkg, test string }

// A skip is a test that did not try.
type skip struct {
	testKey
	reason string
}

// A collector reads a stream of events, prints failures as they happen, and
// remembers counts, skips and the outcome of the tests that rows name.
type collector struct {
	out    io.Writer
	module string

	packages map[string]*pkgRun // running
	builds   map[string]*clip
	ran      map[string]bool // packages whose tests ran to their end
	watched  map[testKey]outcome
	stray    int
	some     bool // there was an event

	passed, failed, skipped int
	skips                   []skip // the first maxSkips of them
}

// A pkgRun is a package whose tests are running.
type pkgRun struct {
	output  clip
	tests   map[string]*testRun
	kept    int // bytes in the tests' clips
	passed  int
	failed  int
	skipped int
	cached  bool
}

// A testRun is a running test.
type testRun struct {
	output clip
	inside bool // one of its subtests failed, and has been printed
}

func newCollector(out io.Writer, module string, rows []row) *collector {
	c := &collector{
		out: out, module: module,
		packages: make(map[string]*pkgRun),
		builds:   make(map[string]*clip),
		ran:      make(map[string]bool),
		watched:  make(map[testKey]outcome),
	}
	for _, r := range rows {
		// The parent tells a subtest that is gone from one that did not run.
		top, _, _ := strings.Cut(r.test, "/")
		c.watched[testKey{r.pkg, r.test}] = unseen
		c.watched[testKey{r.pkg, top}] = unseen
	}
	return c
}

// read takes the whole stream.
func (c *collector) read(r io.Reader) error {
	lines := bufio.NewReaderSize(r, maxEvent)
	for {
		line, err := lines.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			return fmt.Errorf("read test output: a line is longer than %d bytes", maxEvent)
		}
		if len(bytes.TrimSpace(line)) > 0 {
			c.line(line)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read test output: %w", err)
		}
	}
	if !c.some {
		c.fail("there is no test output: did the tests start?")
	}
	for _, name := range sortedKeys(c.packages) {
		c.fail("%s: the output ends before the package does", c.short(name))
		c.unfinished(name, c.packages[name])
	}
	return nil
}

// line takes one line. Lines that are no JSON, as the go command prints them
// about itself, are passed on; a torn event is a failure.
func (c *collector) line(line []byte) {
	var e event
	if !bytes.HasPrefix(line, []byte("{")) {
		if c.stray++; c.stray <= maxStray {
			fmt.Fprintf(c.out, "%s\n", bytes.TrimRight(line, "\r\n"))
		}
		return
	}
	if err := json.Unmarshal(line, &e); err != nil {
		c.fail("a line of the test output cannot be read (%v): %.80s", err, line)
		return
	}
	c.some = true
	c.event(e)
}

// event takes one event.
func (c *collector) event(e event) {
	switch {
	case e.Action == "build-output":
		if c.builds[e.ImportPath] == nil && len(c.builds) < maxBuilds {
			c.builds[e.ImportPath] = new(clip)
		}
		if build := c.builds[e.ImportPath]; build != nil {
			build.add(e.Output)
		}
	case e.Package == "":
		// build-fail: the package that needed the build fails with it.
	case e.Test == "":
		c.packageEvent(e, c.pkg(e.Package))
	default:
		c.testEvent(e, c.pkg(e.Package))
	}
}

func (c *collector) pkg(name string) *pkgRun {
	p := c.packages[name]
	if p == nil {
		p = &pkgRun{tests: make(map[string]*testRun)}
		c.packages[name] = p
	}
	return p
}

// testEvent takes an event of one test.
func (c *collector) testEvent(e event, p *pkgRun) {
	t := p.tests[e.Test]
	if t == nil {
		t = new(testRun)
		p.tests[e.Test] = t
	}
	switch e.Action {
	case "output":
		if p.kept > maxLiveOutput {
			t.output.dropped += len(e.Output)
		} else {
			p.kept += t.output.add(e.Output)
		}
		return
	case "pass":
		c.note(e, passed)
		if isTop(e.Test) {
			p.passed++
			c.passed++
		}
	case "skip":
		c.note(e, skipped)
		p.skipped++
		c.skip(e, t)
	case "fail":
		c.failTest(e.Package, e.Test, p, t, fmt.Sprintf("(%.2fs)", e.Elapsed))
	case "run", "pause", "cont":
		return
	}
	p.kept -= t.output.size()
	delete(p.tests, e.Test)
}

// skip counts a test that did not try, and remembers why.
func (c *collector) skip(e event, t *testRun) {
	if c.skipped++; c.skipped > maxSkips {
		return
	}
	reason := strings.Join(strings.Fields(ownLines(t.output.String())), " ")
	c.skips = append(c.skips, skip{testKey{c.short(e.Package), e.Test}, reason[:min(len(reason), maxReason)]})
}

// failTest counts and prints one failed test. A parent whose subtests have
// told the story is printed only if it has something to add.
func (c *collector) failTest(pkg, name string, p *pkgRun, t *testRun, how string) {
	c.note(event{Package: pkg, Test: name}, failed)
	if isTop(name) {
		p.failed++
		c.failed++
	}
	p.tellParents(name)
	text := ownLines(t.output.String())
	if text == "" && t.inside {
		return
	}
	fmt.Fprintf(c.out, "FAIL %s %s %s\n%s", c.short(pkg), name, how, text)
}

// tellParents notes in every test above a subtest that it failed. A subtest's
// name may hold a slash of its own, so that some of its prefixes are no tests.
func (p *pkgRun) tellParents(name string) {
	for i, char := range name {
		if parent := p.tests[name[:i]]; char == '/' && parent != nil {
			parent.inside = true
		}
	}
}

// packageEvent takes an event of a package as a whole.
func (c *collector) packageEvent(e event, p *pkgRun) {
	switch e.Action {
	case "output":
		p.output.add(e.Output)
		p.cached = p.cached || strings.HasSuffix(strings.TrimSpace(e.Output), "(cached)")
	case "pass":
		c.endPackage(e, p, "ok  ")
	case "fail":
		if e.FailedBuild != "" {
			c.failBuild(e)
		} else {
			c.unfinished(e.Package, p)
			if p.failed == 0 {
				c.fail("%s: the package failed outside its tests\n%s", c.short(e.Package), ownLines(p.output.String()))
			}
			c.endPackage(e, p, "FAIL")
		}
		delete(c.packages, e.Package)
	case "skip": // no test files
		delete(c.packages, e.Package)
	}
}

// endPackage prints the one line that a package gets.
func (c *collector) endPackage(e event, p *pkgRun, verdict string) {
	c.ran[c.short(e.Package)] = true
	took := time.Duration(e.Elapsed * float64(time.Second)).Round(10 * time.Millisecond).String()
	if p.cached {
		took = "cached"
	}
	fmt.Fprintf(c.out, "%s %s (%d passed, %d failed, %d skipped, %s)\n", verdict, c.short(e.Package), p.passed, p.failed, p.skipped, took)
	delete(c.packages, e.Package)
}

// failBuild counts a package that did not build, and prints why once.
func (c *collector) failBuild(e event) {
	why := fmt.Sprintf("see the build of %s above\n", e.FailedBuild)
	if build := c.builds[e.FailedBuild]; build != nil && build.size() > 0 {
		why = indent(build.String())
		c.builds[e.FailedBuild] = new(clip)
	}
	c.fail("%s: the package does not build\n%s", c.short(e.Package), why)
}

// unfinished fails the tests that a package leaves behind when it panics, runs
// into its time limit or is cut off.
func (c *collector) unfinished(pkg string, p *pkgRun) {
	for _, name := range slices.Backward(sortedKeys(p.tests)) { // subtests before their parents
		c.failTest(pkg, name, p, p.tests[name], "did not finish")
	}
	clear(p.tests)
}

// fail counts and prints a failure that is not a test's.
func (c *collector) fail(format string, args ...any) {
	c.failed++
	fmt.Fprintf(c.out, "FAIL %s\n", strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}

// note remembers the outcome of a test that a row names.
func (c *collector) note(e event, o outcome) {
	key := testKey{c.short(e.Package), e.Test}
	if before, ok := c.watched[key]; ok {
		c.watched[key] = max(before, o)
	}
}

// short is a package's path below the module's root.
func (c *collector) short(pkg string) string {
	if pkg == c.module {
		return "."
	}
	return strings.TrimPrefix(pkg, c.module+"/")
}

func isTop(test string) bool { return !strings.Contains(test, "/") }

// frames begin the lines that the testing package writes around a test's own.
var frames = []string{"=== RUN", "=== PAUSE", "=== CONT", "=== NAME", "--- FAIL", "--- SKIP", "--- PASS", "FAIL\t", "FAIL\n", "PASS\n", "exit status"}

// ownLines is the output of a test without the frames, indented.
func ownLines(output string) string {
	var own strings.Builder
	for line := range strings.Lines(output) {
		trimmed := strings.TrimLeft(line, " ")
		if !slices.ContainsFunc(frames, func(frame string) bool { return strings.HasPrefix(trimmed, frame) }) {
			own.WriteString(line)
		}
	}
	return indent(own.String())
}

// indent sets text off from the lines around it. Lines of a test are already.
func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		if !strings.HasPrefix(line, "    ") {
			b.WriteString("    ")
		}
		b.WriteString(strings.TrimRight(line, "\n"))
		b.WriteByte('\n')
	}
	return b.String()
}
