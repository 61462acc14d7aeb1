// Acceptance reads the output of "go test -json", prints what a developer needs
// to see of it, and says which acceptance requirements the run has held.
//
//	acceptance [flags] [file]              read the output from a file, or from standard input
//	acceptance [flags] -exec go test -json ./...   run the tests, so that their exit status counts too
//
// Flags:
//
//	-tsv file      the rows: which test of ours holds which requirement; empty for none
//	-spec file     the requirements; where the file does not exist ids are not compared
//	-root folder   where the packages are, to tell a test that did not run from one that is gone
//	-module path   the module path that package names in the output begin with
//
// The rows are tab-separated: id, package, test, tier, broken_by. A package is
// its path below the module's root. A test may name a subtest. The tier is pure
// or real: whether the test holds the requirement in pure code or against real
// processes, disks and sockets. broken_by is the edit that was seen to make the
// test fail, in words, or mutant:name for one that tools/sim -mutants applies.
// A requirement may have several rows; it is held when all of them are.
//
// A row is held when its test passed, missing when the test exists and did not
// pass in this run, and stale when there is no such test.
//
// The last line is "N passed, N failed, N skipped". Passed and failed count top-level
// tests, fuzz targets and examples; a package that did not build, or failed
// outside its tests, counts as one failed. Skipped counts subtests too: what was
// not tried shall not hide in a parent that passed.
//
// The exit status is 0 when nothing failed and no row is missing, stale or
// wrong, 1 when something did, 2 when the arguments or files cannot be used.
//
// The output of passing tests is dropped as they pass, and what is kept of a
// failing one is bounded, so that a stream of any length can be read.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Exit statuses.
const (
	exitHeld   = 0
	exitFailed = 1
	exitUsage  = 2
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// options are the parsed flags.
type options struct {
	tsv, spec, root, module string
	exec                    bool
	args                    []string
}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("acceptance", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.tsv, "tsv", "docs/acceptance.tsv", "rows `file`; empty for none")
	flags.StringVar(&o.spec, "spec", "../shared/spec/acceptance.tsv", "requirements `file`; it need not exist")
	flags.StringVar(&o.root, "root", ".", "the module's root `folder`")
	flags.StringVar(&o.module, "module", "github.com/forgeyard/forgeyard", "the module's `path`")
	flags.BoolVar(&o.exec, "exec", false, "the arguments are a command that prints the test output")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	o.args = flags.Args()
	switch {
	case o.exec && len(o.args) == 0:
		return o, errors.New("-exec needs a command such as go test -json behind it")
	case !o.exec && len(o.args) > 1:
		return o, fmt.Errorf("one file at most, not %d; to run a command put -exec before it", len(o.args))
	}
	return o, nil
}

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parseFlags(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return exitHeld
	}
	var rows []row
	var reqs *requirements
	if err == nil {
		rows, err = readRows(o.tsv)
	}
	if err == nil {
		reqs, err = readRequirements(o.spec)
	}
	if err != nil {
		fmt.Fprintf(stderr, "acceptance: %v\n", err)
		return exitUsage
	}
	c := newCollector(stdout, o.module, rows)
	if err := o.feed(c, stdin, stderr); err != nil {
		fmt.Fprintf(stderr, "acceptance: %v\n", err)
		return exitUsage
	}
	ok := report(stdout, c, judge(rows, reqs, c, newSources(o.root)), reqs)
	fmt.Fprintf(stdout, "%d passed, %d failed, %d skipped\n", c.passed, c.failed, c.skipped)
	if !ok || c.failed > 0 {
		return exitFailed
	}
	return exitHeld
}

// feed gives the collector its stream: from a command, a file or stdin.
func (o options) feed(c *collector, stdin io.Reader, stderr io.Writer) error {
	switch {
	case o.exec:
		return o.command(c, stderr)
	case len(o.args) == 1:
		file, err := os.Open(o.args[0])
		if err != nil {
			return fmt.Errorf("open test output: %w", err)
		}
		defer file.Close()
		return c.read(file)
	default:
		return c.read(stdin)
	}
}

// command runs the tests and reads what they print. A command that fails
// although its output shows no failure counts as one: it may have ended before
// it printed anything.
func (o options) command(c *collector, stderr io.Writer) error {
	cmd := exec.Command(o.args[0], o.args[1:]...)
	cmd.Stderr = stderr
	output, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run %s: %w", o.args[0], err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run %s: %w", o.args[0], err)
	}
	if err := c.read(output); err != nil {
		// The pipe is read no further: the command must not wait for it.
		return errors.Join(err, cmd.Process.Kill(), cmd.Wait())
	}
	if err := cmd.Wait(); err != nil && c.failed == 0 {
		c.fail("%s ended with %v although no test failed", o.args[0], err)
	}
	return nil
}
