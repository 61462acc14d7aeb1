package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
)

// show prints a result: as JSON if that was asked for, else as table makes it.
func (a *app) show(result any, table func(w io.Writer)) error {
	if a.output == "json" {
		return a.json(result)
	}
	w := tabwriter.NewWriter(a.env.Stdout, 0, 0, 2, ' ', 0)
	table(w)
	return w.Flush()
}

// json prints a value with indents.
func (a *app) json(v any) error {
	encoder := json.NewEncoder(a.env.Stdout)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// event prints a value on one line of JSON.
func (a *app) event(v any) error {
	encoder := json.NewEncoder(a.env.Stdout)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// row writes one line of a table.
func row(w io.Writer, cells ...string) {
	for i, c := range cells {
		if cells[i] = cell(c); cells[i] == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(w, strings.TrimRight(strings.Join(cells, "\t"), " "))
}

// field writes one line of a description; nothing for an empty value.
func field(w io.Writer, name, value string) {
	if value != "" {
		fmt.Fprintf(w, "%s:\t%s\n", name, cell(value))
	}
}

// note tells a person something that is not the result.
func (a *app) note(format string, args ...any) {
	fmt.Fprintln(a.env.Stderr, plain(fmt.Sprintf(format, args...)))
}

// when writes a time as people read it.
func when(t *api.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return t.Local().Format("2006-01-02 15:04:05")
}

// took is the time between two moments.
func took(from, to *api.Time) string {
	if from == nil || to == nil {
		return ""
	}
	return to.Sub(*from).Round(10 * time.Millisecond).String()
}
