package doctor

import (
	"fmt"
	"io"

	"github.com/forgeyard/forgeyard/internal/console"
)

// Table writes findings for people, with tabs between the columns: each with its result, and
// what mends it on the line below.
func (r *Report) Table(w io.Writer) {
	console.Row(w, "RESULT", "CHECK", "DETAIL")
	for _, f := range r.Findings {
		console.Row(w, string(f.Grade), f.Check, f.Detail)
		if f.Mend != "" {
			fmt.Fprintf(w, "\t\t→ %s\n", console.Cell(f.Mend))
		}
	}
}

// Summary says in one sentence whether jobs can be confined here.
func (r *Report) Summary() string {
	bad, poor := 0, 0
	for _, f := range r.Findings {
		switch f.Grade {
		case Missing:
			bad++
		case Weak:
			poor++
		}
	}
	word := "jobs can be confined on this machine"
	if !r.Confined {
		word = "jobs cannot be confined on this machine"
	}
	return fmt.Sprintf("%s; %d missing, %d weak", word, bad, poor)
}
