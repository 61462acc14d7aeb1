//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/fleet"
)

// wholeRuns is how many runs of a pipeline are made for one value, of which it is the median.
const wholeRuns = 5

// startFigure is the command from its start to its end when it has next to nothing to do.
var startFigure = figure{
	name: "cli.start", unit: "ms", limitIs: "a Go program that prints a line",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := newCommandYard(ctx)
		if err != nil {
			return pair{}, err
		}
		hello, err := y.hello(ctx)
		if err != nil {
			return pair{}, errors.Join(err, y.close())
		}
		return pair{
			ours:  each(func(ctx context.Context) (time.Duration, error) { return ran(y.command(ctx, y.folder, "version")) }),
			limit: each(func(ctx context.Context) (time.Duration, error) { return ran(exec.CommandContext(ctx, hello)) }),
			end:   func() { _ = y.close() },
		}, nil
	},
}

// overheadFigure is a pipeline of one step that does nothing, in a repository that was not seen before: with a daemon and an
// agent that start for it within the command, against those that serve already. Both have started in their folders before.
var overheadFigure = figure{
	name: "run.overhead", unit: "ms", limitIs: "the same while forgeyard up runs",
	begin: func(ctx context.Context, _ options) (pair, error) {
		y, err := newCommandYard(ctx)
		if err != nil {
			return pair{}, err
		}
		if err := y.up(ctx, filepath.Join(y.folder, "up")); err != nil {
			return pair{}, errors.Join(err, y.close())
		}
		return pair{
			ours:  several(wholeRuns, y.pipelineIn(filepath.Join(y.folder, "alone"))),
			limit: several(wholeRuns, y.pipelineIn(filepath.Join(y.folder, "up"))),
			end:   func() { _ = y.close() },
		}, nil
	},
}

// commandYard is the command, and a folder for whatever it keeps.
type commandYard struct {
	folder   string
	programs fleet.Programs
	serves   *exec.Cmd // forgeyard up; nil without one
	count    int
}

func newCommandYard(ctx context.Context) (*commandYard, error) {
	built, err := programs.Programs(ctx)
	if err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "fyb")
	return &commandYard{folder: folder, programs: built}, err
}

// close ends what serves.
func (y *commandYard) close() error {
	if y.serves != nil {
		_ = y.serves.Process.Signal(os.Interrupt)
		_ = y.serves.Wait()
	}
	return os.RemoveAll(y.folder)
}

// hello builds the program of the limit.
func (y *commandYard) hello(ctx context.Context) (string, error) {
	const text = "package main\n\nimport \"fmt\"\n\nfunc main() { fmt.Println(\"hello\") }\n"
	source, program := filepath.Join(y.folder, "hello.go"), filepath.Join(y.folder, "hello")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build a program that prints a line: %w\n%s", err, out)
	}
	return program, nil
}

// command is the command in a folder. What it keeps goes to the yard.
func (y *commandYard) command(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, y.programs.Command, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_CONFIG_HOME="+filepath.Join(y.folder, "config"), "XDG_CACHE_HOME="+filepath.Join(y.folder, "cache"))
	return cmd
}

// repository makes a repository with a pipeline of one step.
func (y *commandYard) repository(ctx context.Context) (string, error) {
	y.count++
	dir := filepath.Join(y.folder, fmt.Sprintf("repository-%d", y.count))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return "", err
	}
	const text = "version: 1\njobs:\n  nothing:\n    steps:\n      - run: \"true\"\n"
	if err := os.WriteFile(filepath.Join(dir, ".forgeyard.yml"), []byte(text), 0o600); err != nil {
		return "", err
	}
	for _, args := range []string{"init -q", "add .", "-c user.name=bench -c user.email=bench@localhost commit -q -m first"} {
		cmd := exec.CommandContext(ctx, "git", strings.Fields(args)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("git %s: %w\n%s", args, err, out)
		}
	}
	return dir, nil
}

// pipelineIn runs the pipeline of a new repository with a folder for the daemon's data.
func (y *commandYard) pipelineIn(data string) spawn {
	return func(ctx context.Context) (time.Duration, error) {
		dir, err := y.repository(ctx)
		if err != nil {
			return 0, err
		}
		cmd := y.command(ctx, dir, "run", "--data", data)
		begun := time.Now()
		if out, err := cmd.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("forgeyard run: %w\n%s", err, out)
		}
		return time.Since(begun), os.RemoveAll(dir)
	}
}

// up starts forgeyard up, and waits until it serves.
func (y *commandYard) up(ctx context.Context, data string) error {
	cmd := y.command(ctx, y.folder, "up", "--data", data)
	said, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	y.serves = cmd
	line, err := bufio.NewReader(said).ReadString('\n')
	if err == nil && !strings.HasPrefix(line, "ready ") {
		err = fmt.Errorf("it says %q", line)
	}
	if err != nil {
		return fmt.Errorf("forgeyard up does not serve: %w", err)
	}
	return nil
}
