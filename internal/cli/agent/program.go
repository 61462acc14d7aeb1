package agent

import (
	"context"
	"fmt"
	"log/slog"
	"os"

	"github.com/forgeyard/forgeyard/internal/program"
)

// Program runs the command as this process, with the arguments behind its name, and returns its exit code.
func Program(args []string) int {
	var reloader Reloader
	options := program.Options{Name: "forgeyard-agent", Reload: reloader.Reload}
	return program.Run(context.Background(), options, func(ctx context.Context, p *program.Program) error {
		if err := program.Guard(); err != nil {
			fmt.Fprintf(os.Stderr, "forgeyard-agent: jobs of this user may read what this process knows: %v\n", err)
		}
		env := Env{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(), Version: program.Version(), Level: new(slog.LevelVar),
		}
		return Main(ctx, p, env, args, &reloader)
	})
}
