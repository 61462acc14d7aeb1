// Package clitest runs scripts of commands as a user types them: the three programs as processes of their own, over real
// QUIC on loopback. The scripts stand in cmd/*/testdata/script.
//
// Besides what testscript offers, a script has:
//
//	until [!] PROGRAM ARGUMENT…   run the program until it ends well (or badly), at most for WaitWithin
//	fetch URL FILE                write the answer of a GET to a file
//	capture NAME PATTERN          set the variable to the first group of the pattern in the last standard output
//
// It waits for what happens and never for time to pass.
package clitest

import (
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/cli/agent"
	"github.com/forgeyard/forgeyard/internal/cli/daemon"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/standalone"
)

// WaitWithin bounds every wait of a script.
const WaitWithin = time.Minute

// pause is the time between two tries of until.
const pause = 50 * time.Millisecond

// Main is the TestMain of a package with scripts: the test's executable is also each of the programs.
func Main(m *testing.M) {
	native.Main()
	process.Supervise()
	testscript.Main(m, map[string]func(){
		"forgeyard": func() {
			os.Exit(cli.Program(os.Args[1:], standalone.Yard{Version: program.Version(), Getenv: os.Getenv}))
		},
		"forgeyard-agent":  func() { os.Exit(agent.Program(os.Args[1:])) },
		"forgeyard-daemon": func() { os.Exit(daemon.Program(os.Args[1:])) },
	})
}

// Run runs the scripts of the package under test.
func Run(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("XDG_CONFIG_HOME", "")
			env.Setenv("XDG_DATA_HOME", "")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"until": until, "capture": capture, "fetch": fetch},
	})
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) > 0 && args[0] == "!" {
		neg, args = true, args[1:]
	}
	if len(args) == 0 {
		ts.Fatalf("usage: until [!] PROGRAM ARGUMENT…")
	}
	for end := time.Now().Add(WaitWithin); ; time.Sleep(pause) {
		err := ts.Exec(args[0], args[1:]...)
		if (err == nil) != neg {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("until: %v: %v", args, err)
		}
	}
}

func fetch(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: fetch URL FILE")
	}
	client := http.Client{Timeout: WaitWithin}
	defer client.CloseIdleConnections()
	answer, err := client.Get(args[0])
	ts.Check(err)
	body, err := io.ReadAll(answer.Body)
	ts.Check(errors.Join(err, answer.Body.Close()))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), body, 0o644))
}

func capture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: capture NAME PATTERN")
	}
	pattern, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	found := pattern.FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) != 2 {
		ts.Fatalf("capture: no %s in %q", args[1], ts.ReadFile("stdout"))
	}
	ts.Setenv(args[0], found[1])
}
