package sim

import (
	"bufio"
	_ "embed"
	"fmt"
	"strings"
)

// Mutant is an edit of the product's source that breaks one rule. The simulation must notice it: a rule whose breaking
// nobody notices is not tested. Mutants are applied with the go command's overlay, so that no seam for them exists in
// the product's code.
type Mutant struct {
	Name  string
	Why   string // what goes wrong without the rule
	Edits []Edit
}

// Edit replaces text that occurs exactly once in a file.
type Edit struct {
	File     string // from the root of the module
	Old, New string
}

//go:embed mutants.txt
var mutantText string

// Mutants returns every mutant of mutants.txt, in its order.
func Mutants() ([]Mutant, error) { return parseMutants(mutantText) }

// parseMutants reads blocks of this form; a mutant may have several edits, and a file may have several in a row:
//
//	mutant NAME: why
//	file PATH
//	- old line
//	+ new line
func parseMutants(text string) ([]Mutant, error) {
	var list []Mutant
	lines := bufio.NewScanner(strings.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		line := lines.Text()
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := parseMutantLine(&list, line); err != nil {
			return nil, fmt.Errorf("mutants.txt:%d: %w", n, err)
		}
	}
	return list, nil
}

func parseMutantLine(list *[]Mutant, line string) error {
	if rest, ok := strings.CutPrefix(line, "mutant "); ok {
		name, why, ok := strings.Cut(rest, ": ")
		if !ok {
			return fmt.Errorf("a mutant is written %q", "mutant NAME: why")
		}
		*list = append(*list, Mutant{Name: name, Why: why})
		return nil
	}
	if len(*list) == 0 {
		return fmt.Errorf("%q before the first mutant", line)
	}
	m := &(*list)[len(*list)-1]
	if path, ok := strings.CutPrefix(line, "file "); ok {
		m.Edits = append(m.Edits, Edit{File: path})
		return nil
	}
	if len(m.Edits) == 0 {
		return fmt.Errorf("%q before the file it is about", line)
	}
	e := &m.Edits[len(m.Edits)-1]
	switch {
	case strings.HasPrefix(line, "- ") || line == "-":
		if e.New != "" {
			m.Edits = append(m.Edits, Edit{File: e.File})
			e = &m.Edits[len(m.Edits)-1]
		}
		e.Old += strings.TrimPrefix(line[1:], " ") + "\n"
	case strings.HasPrefix(line, "+ ") || line == "+":
		e.New += strings.TrimPrefix(line[1:], " ") + "\n"
	default:
		return fmt.Errorf("%q is neither a mutant, a file, an old line nor a new line", line)
	}
	return nil
}

// Apply returns the source with the edit made. Text that does not occur exactly once is an error: then the mutant has
// to be written anew for the code as it is now.
func (e Edit) Apply(source string) (string, error) {
	if n := strings.Count(source, e.Old); n != 1 {
		return "", fmt.Errorf("%s: the text to replace occurs %d times, not once:\n%s", e.File, n, e.Old)
	}
	return strings.Replace(source, e.Old, e.New, 1), nil
}
