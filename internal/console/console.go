// Package console is how our commands speak with people and scripts: tables or JSON, remarks beside the result, usage errors
// that say where to read on, and text from elsewhere that cannot steer a terminal.
//
// It knows nothing of what it shows, adds no colours, and starts no goroutine.
package console

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/forgeyard/forgeyard/internal/program"
)

// Usage returns an error that ends a program with the code for wrong usage.
func Usage(format string, args ...any) error {
	return program.Exit(program.CodeUsage, fmt.Errorf(format, args...))
}

// Group returns a command that only holds others.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: use, Short: short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	cmd.AddCommand(commands...)
	return cmd
}

// Strict makes a wrong flag, a wrong number of arguments, or a word that is no command, a usage error in a command and
// all below it. Errors are returned and not printed.
func Strict(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usage("%v\nSee: %s --help", err, cmd.CommandPath())
	})
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error { return explain(cmd, args, check(cmd, args)) }
	}
	for _, sub := range cmd.Commands() {
		Strict(sub)
	}
}

// explain says of arguments that a command does not take what it takes, or which command was probably meant.
func explain(cmd *cobra.Command, args []string, err error) error {
	if err == nil {
		return nil
	}
	hint := ""
	if len(args) > 0 && cmd.HasSubCommands() {
		if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
			hint = fmt.Sprintf("\nDid you mean: %s %s", cmd.CommandPath(), near[0])
		}
	}
	if !cmd.HasSubCommands() && (len(cmd.ValidArgs) == 0 || len(args) != 1) { // their number is wrong, and not a word
		name := strings.TrimPrefix(cmd.CommandPath(), cmd.Root().Name()+" ") // the program's stands before all that it says
		return Usage("%s takes %s, and was given %s\nSee: %s --help", name, takes(cmd), given(args), cmd.CommandPath())
	}
	return Usage("%v%s\nSee: %s --help", err, hint, cmd.CommandPath())
}

// takes is what stands behind the name of a command, in the words of its usage and without its flags.
func takes(cmd *cobra.Command) string {
	var words []string
	for _, word := range strings.Fields(cmd.Use)[1:] {
		if strings.HasPrefix(strings.TrimLeft(word, "["), "-") {
			break
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "no arguments"
	}
	return strings.Join(words, " ")
}

// given says how many arguments there were. It does not repeat them: one may be a secret that somebody has put there.
func given(args []string) string {
	switch len(args) {
	case 0:
		return "nothing"
	case 1:
		return "one word"
	default:
		return strconv.Itoa(len(args)) + " words"
	}
}

// A Printer prints results to Out and remarks to Err.
type Printer struct {
	Out, Err io.Writer
	JSON     bool // results are JSON instead of tables
}

// Show prints a result: as JSON if that was asked for, else as table writes it, with tabs between columns.
func (p Printer) Show(result any, table func(w io.Writer)) error {
	if p.JSON {
		return p.Value(result)
	}
	out := bufio.NewWriter(p.Out) // the other writes each cell by itself
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	table(w)
	return errors.Join(w.Flush(), out.Flush())
}

// Value prints a value as indented JSON.
func (p Printer) Value(v any) error {
	encoder := json.NewEncoder(p.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// Event prints a value on one line of JSON.
func (p Printer) Event(v any) error {
	encoder := json.NewEncoder(p.Out)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// Note tells a person something that is not the result.
func (p Printer) Note(format string, args ...any) {
	fmt.Fprintln(p.Err, Plain(fmt.Sprintf(format, args...)))
}

// Row writes one line of a table. Each cell is made safe, and an empty one is a dash.
func Row(w io.Writer, cells ...string) {
	line := make([]string, len(cells))
	for i, c := range cells {
		if line[i] = Cell(c); line[i] == "" {
			line[i] = "-"
		}
	}
	fmt.Fprintln(w, strings.Join(line, "\t"))
}

// Field writes one line of a description; nothing for an empty value.
func Field(w io.Writer, name, value string) {
	if value != "" {
		fmt.Fprintf(w, "%s:\t%s\n", name, Cell(value))
	}
}
