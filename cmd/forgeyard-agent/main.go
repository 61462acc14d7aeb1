// Command forgeyard-agent runs jobs of a Forgeyard daemon on this machine. See "forgeyard-agent --help".
//
// The same executable is the supervisor of each attempt, see package executor/process.
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/forgeyard/forgeyard/internal/cli/agent"
	"github.com/forgeyard/forgeyard/internal/executor/process"
	"github.com/forgeyard/forgeyard/internal/program"
)

func main() {
	process.Supervise()
	var reloader agent.Reloader
	options := program.Options{Name: "forgeyard-agent", Reload: reloader.Reload}
	os.Exit(program.Run(context.Background(), options, func(ctx context.Context, p *program.Program) error {
		env := agent.Env{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Version: program.Version(), Level: new(slog.LevelVar),
		}
		return agent.Main(ctx, p, env, os.Args[1:], &reloader)
	}))
}
