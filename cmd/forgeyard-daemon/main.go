// Command forgeyard-daemon keeps the runs of a Forgeyard cluster and gives their jobs to agents. See
// "forgeyard-daemon --help".
package main

import (
	"context"
	"log/slog"
	"os"

	"github.com/forgeyard/forgeyard/internal/cli/daemon"
	"github.com/forgeyard/forgeyard/internal/program"
)

func main() {
	var reloader daemon.Reloader
	options := program.Options{Name: "forgeyard-daemon", Reload: reloader.Reload}
	os.Exit(program.Run(context.Background(), options, func(ctx context.Context, _ *program.Program) error {
		env := daemon.Env{Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Version: program.Version(), Level: new(slog.LevelVar)}
		return daemon.Main(ctx, env, os.Args[1:], &reloader)
	}))
}
