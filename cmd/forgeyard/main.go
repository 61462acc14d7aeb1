// Command forgeyard runs jobs on machines of your own: through a daemon, or with a daemon and an agent in its own process.
// See "forgeyard --help".
//
// The same executable is the launcher and pid 1 of the sandboxes of its own process, and the supervisor of each attempt there
// that is not confined, see packages executor/native and executor/process.
package main

import (
	"os"

	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/standalone"
)

func main() {
	native.Main()
	process.Supervise()
	native.RefuseUnsafe()
	os.Exit(cli.Program(os.Args[1:], standalone.Yard{Version: program.Version(), Getenv: os.Getenv}))
}
