// Command forgeyard runs jobs on machines of your own: through a daemon, or with a daemon and an agent in its own process.
// See "forgeyard --help".
//
// The same executable is the supervisor of each attempt that runs in its own process, see package executor/process.
package main

import (
	"context"
	"os"

	"github.com/forgeyard/forgeyard/internal/cli"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/standalone"
)

func main() {
	process.Supervise()
	os.Exit(program.Run(context.Background(), program.Options{Name: "forgeyard"}, func(ctx context.Context, p *program.Program) error {
		env := cli.Env{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Version: program.Version(),
			Local: standalone.Yard{Version: program.Version(), Getenv: os.Getenv},
		}
		return cli.Main(ctx, p, env, os.Args[1:])
	}))
}
