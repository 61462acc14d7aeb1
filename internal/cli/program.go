package cli

import (
	"context"
	"os"

	"github.com/forgeyard/forgeyard/internal/program"
)

// Program runs the command as this process, with the arguments behind its name, and returns its exit code.
func Program(args []string, local Local) int {
	return program.Run(context.Background(), program.Options{Name: "forgeyard"}, func(ctx context.Context, p *program.Program) error {
		env := Env{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv, Version: program.Version(), Local: local,
		}
		return Main(ctx, p, env, args)
	})
}
