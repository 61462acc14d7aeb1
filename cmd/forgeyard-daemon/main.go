// Command forgeyard-daemon keeps the runs of a Forgeyard cluster and gives their jobs to agents. See
// "forgeyard-daemon --help".
package main

import (
	"os"

	"github.com/forgeyard/forgeyard/internal/cli/daemon"
)

func main() { os.Exit(daemon.Program(os.Args[1:])) }
