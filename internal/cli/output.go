package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
)

// print is how this command's results look.
func (a *app) print() console.Printer {
	return console.Printer{Out: a.env.Stdout, Err: a.env.Stderr, JSON: a.output == "json"}
}

// note tells a person something that is not the result.
func (a *app) note(format string, args ...any) {
	if a.screen.Load() == nil {
		a.print().Note(format, args...)
		return
	}
	for line := range strings.SplitSeq(console.Plain(fmt.Sprintf(format, args...)), "\n") {
		a.tell(line)
	}
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
