package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/pipeline"
	"github.com/forgeyard/forgeyard/internal/program"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

func (a *app) lintCommand() *cobra.Command {
	var schema bool
	cmd := &cobra.Command{
		Use: "lint [FILE…]", Short: "Check pipeline files, and tell everything that is wrong with them",
		Long: `Check pipeline files and tell everything that is wrong with them at once, each problem with
its place and what to do about it. Advice is told too, and is no error. No daemon is asked and
nothing runs.

Without FILE it is the .forgeyard.yml of this folder, or of the nearest folder above it in the
same git repository. - is standard input.

Ends with 0 if every file can run, and with 64 if one cannot, as "forgeyard run" would.`,
		Example: `  forgeyard lint
  forgeyard lint -o json services/*/.forgeyard.yml
  forgeyard lint --schema > pipeline.schema.json   for editors that check while one writes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error {
			if schema {
				_, err := a.env.Stdout.Write(pipeline.Schema())
				return err
			}
			return a.lint(args)
		},
	}
	cmd.Flags().BoolVar(&schema, "schema", false, "print the JSON Schema of pipeline files instead")
	return cmd
}

// lintedFile is what lint says of a file, as JSON.
type lintedFile struct {
	File     string          `json:"file"`
	OK       bool            `json:"ok"` // it can run
	Jobs     int             `json:"jobs"`
	Problems []lintedProblem `json:"problems"`
}

type lintedProblem struct {
	Code   pipeline.Code `json:"code"`
	Line   int           `json:"line,omitempty"` // from 1; absent for the file as a whole
	Column int           `json:"column,omitempty"`
	Advice bool          `json:"advice,omitempty"` // it keeps nothing from running
	What   string        `json:"what"`
	Hint   string        `json:"hint,omitempty"`
}

func (a *app) lint(names []string) error {
	if len(names) == 0 {
		names = []string{""}
	}
	var all []lintedFile
	var failed []error
	bad := 0
	for _, name := range names {
		p, err := a.readPipeline(name)
		if err != nil {
			failed = append(failed, err)
			continue
		}
		file, found := pipeline.Parse(p.Text)
		one := linted(p, file, found)
		all = append(all, one)
		if !one.OK {
			bad++
		}
		if a.output != "json" {
			a.showProblems(a.env.Stdout, p, found)
			a.note("%s", lintSummary(one, found))
		}
	}
	if a.output == "json" {
		if err := a.print().Value(map[string]any{"files": append([]lintedFile{}, all...)}); err != nil {
			return err
		}
	}
	switch {
	case len(failed) > 0:
		return program.Exit(program.CodeUsage, errors.Join(failed...))
	case bad > 0:
		return program.Exit(program.CodeUsage, nil)
	}
	return nil
}

func linted(p *pipelineText, file *pipeline.File, found pipeline.Problems) lintedFile {
	one := lintedFile{File: p.Name, OK: file != nil, Problems: []lintedProblem{}}
	if file != nil {
		one.Jobs = len(file.Jobs)
	}
	for _, f := range found {
		one.Problems = append(one.Problems, lintedProblem{f.Code, f.At.Line, f.At.Column, f.Advice(), f.What, f.Hint})
	}
	return one
}

func lintSummary(one lintedFile, found pipeline.Problems) string {
	switch advice := len(found) - len(found.Wrong()); {
	case !one.OK:
		return fmt.Sprintf("%s: %s", one.File, problemCount(found))
	case advice > 0:
		return fmt.Sprintf("%s can run: %s, with advice: %d", one.File, counted(one.Jobs, "job"), advice)
	}
	return fmt.Sprintf("%s is good: %s", one.File, counted(one.Jobs, "job"))
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// Colours of problems on a terminal.
const (
	boldRed    = "\x1b[1;31m"
	boldYellow = "\x1b[1;33m"
	plainAgain = "\x1b[0m"
)

// showProblems writes every problem with its line. What comes from the file cannot steer the terminal.
func (a *app) showProblems(to io.Writer, p *pipelineText, found pipeline.Problems) {
	colours := telemetry.IsTerminal(to) && a.env.Getenv("NO_COLOR") == ""
	for _, f := range found {
		lines := strings.Split(strings.TrimSuffix(f.Show(p.Name, p.Text), "\n"), "\n")
		for i, line := range lines {
			line = plainLine(line)
			if colours && (i == 0 || i == len(lines)-1) {
				colour := boldRed
				if f.Advice() {
					colour = boldYellow
				}
				line = colour + line + plainAgain
			}
			fmt.Fprintln(to, line)
		}
	}
}

// plainLine makes a line safe, and leaves its tabs where they are.
func plainLine(line string) string {
	parts := strings.Split(line, "\t")
	for i := range parts {
		parts[i] = console.Plain(parts[i])
	}
	return strings.Join(parts, "\t")
}
