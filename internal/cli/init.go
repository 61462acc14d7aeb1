package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/pipeline"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/snapshot/git"
)

func (a *app) initCommand() *cobra.Command {
	var force, show bool
	cmd := &cobra.Command{
		Use: "init", Short: "Write a first pipeline file for what is in the repository",
		Long: `Write a first ` + pipelineName + ` for what is in the repository: a job for each language or build
system whose files stand in its top folder, and one to begin with where there is none. It is
written into the top of the git repository, or into this folder outside of one.

The file is a beginning. Read it, change it, and check it with "forgeyard lint".`,
		Example: `  forgeyard init
  forgeyard init --print     only show what would be written`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error { return a.init(force, show) },
	}
	cmd.Flags().BoolVar(&force, "force", false, "write over a file that is there")
	cmd.Flags().BoolVar(&show, "print", false, "print the file instead of writing it")
	return cmd
}

func (a *app) init(force, show bool) error {
	dir, err := os.Getwd()
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	if top, err := git.Find(dir); err == nil {
		dir = top
	}
	text, found := firstPipeline(os.DirFS(dir))
	if file, problems := pipeline.Parse([]byte(text)); file == nil {
		return fmt.Errorf("the file that was made up is wrong, which is our mistake: %w", problems) // the tests have tried each part
	}
	if show {
		_, err := fmt.Fprint(a.env.Stdout, text)
		return err
	}
	name := filepath.Join(dir, pipelineName)
	if err := writeFirst(name, text, force); err != nil {
		return err
	}
	if a.output == "json" {
		return a.print().Value(map[string]any{"file": name, "found": append([]string{}, found...)})
	}
	fmt.Fprintln(a.env.Stdout, console.Plain(name))
	if len(found) == 0 {
		a.note("nothing here says how it is built, so there is one job to begin with")
	} else {
		a.note("made for %s", strings.Join(found, ", "))
	}
	a.note("read it, change it, then: forgeyard run")
	return nil
}

// writeFirst writes a file that is not there yet, or any with force. It never follows a link.
func writeFirst(name, text string, force bool) error {
	if force {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return program.Exit(program.CodeFailed, fmt.Errorf("%s cannot be written: %w", console.Plain(name), cause(err)))
		}
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	switch {
	case errors.Is(err, fs.ErrExist):
		return console.Usage("there is a %s already\nCheck it with: forgeyard lint. To write over it: forgeyard init --force", console.Plain(name))
	case err != nil:
		return program.Exit(program.CodeFailed, fmt.Errorf("%s cannot be written: %w", console.Plain(name), cause(err)))
	}
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s cannot be written: %w", console.Plain(name), cause(err)), os.Remove(name))
	}
	return nil
}
