// Command forgeyard-agent runs jobs of a Forgeyard daemon on this machine. See "forgeyard-agent --help".
//
// The same executable is the launcher and pid 1 of sandboxes, and the supervisor of each attempt that is not confined, see
// packages executor/native and executor/process.
package main

import (
	"os"

	"github.com/forgeyard/forgeyard/internal/cli/agent"
	"github.com/forgeyard/forgeyard/internal/executor/native"
	"github.com/forgeyard/forgeyard/internal/executor/process"
)

func main() {
	native.Main()
	process.Supervise()
	native.RefuseUnsafe()
	os.Exit(agent.Program(os.Args[1:]))
}
