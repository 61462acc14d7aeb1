package main

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/forgeyard/forgeyard/internal/display/emulator"
)

// The size of the terminal.
const (
	width  = 84
	height = 30
)

// sit runs the pipeline at a terminal, and returns what is seen while jobs run and at the end.
func sit(ctx context.Context, program, repo, home string) (during, after [][]emulator.Cell, err error) {
	seat, err := emulator.Sit(width, height)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, seat.Close()) }()
	if _, err := seat.Program.WriteString("$ forgeyard run\n"); err != nil {
		return nil, nil, err
	}
	cmd := exec.CommandContext(ctx, program, "run")
	cmd.Dir = repo
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "TERM=xterm-256color", "LANG=C.UTF-8"}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = seat.Program, seat.Program, seat.Program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		return nil, nil, err
	}
	cells := func(into *[][]emulator.Cell) func(*emulator.Emulator) {
		return func(e *emulator.Emulator) {
			for _, line := range e.Cells() {
				*into = append(*into, slices.Clone(line))
			}
		}
	}
	err = seat.Until(ctx, "a job that has failed beside one that runs", func(screen []string) bool {
		text := strings.Join(screen, "\n")
		return strings.Contains(text, "✗ test (mac) ") && strings.Contains(text, "● test (linux)") && strings.Contains(text, "● docs")
	})
	seat.With(cells(&during))
	_ = cmd.Wait() // it fails, as it should
	if code := cmd.ProcessState.ExitCode(); code != 1 && err == nil {
		err = errors.New("the run ended otherwise than expected: " + cmd.ProcessState.String())
	}
	_ = seat.Leave()
	seat.With(cells(&after))
	return during, after, err
}
