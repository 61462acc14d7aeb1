package archtest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// tableFile is where the import table stands, relative to the module's root.
const tableFile = "docs/architecture.md"

// tableHeader is the first cell of the header row by which the table is found.
const tableHeader = "Package"

// anything is the word that lets a row import every package but test kits.
const anything = "anything"

// A table is the import table: who may import whom.
type table struct {
	rows []row
}

// A row is one line of the table.
type row struct {
	pattern string // a package path, with * for one element and a final /** for all below
	line    int
	planned bool // the package need not exist yet
	pure    bool // decides, and so has no clock, no I/O, no goroutine
	std     bool // standard library only, not even the leaves
	leaf    bool // may be imported by every other row
	test    bool // a test kit, imported by tests only
	imports []string
	tests   []string // what the tests may import besides
	others  []string // for pure rows: what they may import that is not ours
}

// readTable parses the table. It returns a nil table when there is none.
func readTable(m *Module) (*table, []Violation) {
	data, err := os.ReadFile(filepath.Join(m.Dir, filepath.FromSlash(tableFile)))
	if err != nil {
		return nil, []Violation{{
			Rule: RuleTable, File: tableFile, Line: 1,
			What: fmt.Sprintf("the import table cannot be read (%v)", err),
			Fix:  "write it, with one row for each package",
		}}
	}
	t := new(table)
	var violations []Violation
	inside := false
	number := 0
	for text := range strings.Lines(string(data)) {
		number++
		cells, ok := splitRow(text)
		switch {
		case !ok:
			inside = false
		case cells[0] == tableHeader:
			inside = true
		case inside && strings.Trim(cells[0], "-: ") != "":
			r, err := parseRow(cells, number)
			if err != nil {
				violations = append(violations, badRow(number, err.Error()))
				continue
			}
			t.rows = append(t.rows, r)
		}
	}
	if len(t.rows) == 0 {
		violations = append(violations, badRow(1, "no import table is found"))
	}
	return t, violations
}

func badRow(line int, what string) Violation {
	return Violation{
		Rule: RuleTable, File: tableFile, Line: line, What: what,
		Fix: "rows read | `package` | kind | one line | may import (ours) | may import (others) |",
	}
}

// splitRow cuts a Markdown table line into its trimmed cells.
func splitRow(text string) ([]string, bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "|") {
		return nil, false
	}
	if comment := strings.Index(text, "<!--"); comment >= 0 {
		text = strings.TrimSpace(text[:comment])
	}
	cells := strings.Split(strings.Trim(text, "|"), "|")
	for i, cell := range cells {
		cells[i] = strings.TrimSpace(cell)
	}
	return cells, true
}

// parseRow reads one line of the table.
func parseRow(cells []string, line int) (row, error) {
	r := row{line: line}
	if len(cells) != 5 {
		return r, fmt.Errorf("the row has %d cells, not 5", len(cells))
	}
	name, planned := strings.CutSuffix(cells[0], "(planned)")
	r.planned = planned
	r.pattern = strings.Trim(strings.TrimSpace(name), "`")
	if r.pattern == "" || path.Clean(r.pattern) != r.pattern {
		return r, fmt.Errorf("%q is no package path", r.pattern)
	}
	if err := r.setKind(cells[1]); err != nil {
		return r, err
	}
	if cells[2] == "" {
		return r, fmt.Errorf("the row of %s does not say what the package is", r.pattern)
	}
	ours, tests, _ := strings.Cut(cells[3], "tests:")
	r.imports = splitList(ours)
	r.tests = splitList(tests)
	r.others = splitList(cells[4])
	return r, nil
}

// setKind reads the words of the kind cell.
func (r *row) setKind(cell string) error {
	for _, word := range strings.Fields(strings.ReplaceAll(cell, ",", " ")) {
		switch word {
		case "pure":
			r.pure = true
		case "std":
			r.std = true
		case "leaf":
			r.leaf = true
		case "test":
			r.test = true
		case "—":
		default:
			return fmt.Errorf("%q is no kind; the kinds are pure, std, leaf, test and —", word)
		}
	}
	return nil
}

// splitList cuts a cell such as "`postcard`, `internal/forge`; " into names.
func splitList(cell string) []string {
	var names []string
	for field := range strings.FieldsFuncSeq(cell, func(c rune) bool { return c == ',' || c == ';' }) {
		name := strings.Trim(strings.TrimSpace(field), "`")
		if name != "" && name != "—" {
			names = append(names, name)
		}
	}
	return names
}

// find returns the row of a package: the one that names it exactly, otherwise
// the pattern that says most.
func (t *table) find(pkg string) *row {
	var best *row
	for i := range t.rows {
		r := &t.rows[i]
		if r.pattern == pkg {
			return r
		}
		if match(r.pattern, pkg) && (best == nil || len(r.pattern) > len(best.pattern)) {
			best = r
		}
	}
	return best
}

// match says whether a pattern covers a package. "a/*" covers one element
// below a, "a/**" covers a and everything below.
func match(pattern, pkg string) bool {
	if base, ok := strings.CutSuffix(pattern, "/**"); ok {
		return pkg == base || strings.HasPrefix(pkg, base+"/")
	}
	ok, err := path.Match(pattern, pkg)
	return err == nil && ok
}

func matchAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return match(pattern, pkg) })
}

// checkRows compares the rows with the packages that exist.
func (t *table) checkRows(m *Module) []Violation {
	var violations []Violation
	used := make(map[*row]bool)
	for _, p := range m.Packages {
		r := t.find(p.Path)
		if r == nil {
			violations = append(violations, Violation{
				Rule: RuleTable, File: p.Files[0].Path, Line: 1,
				What: fmt.Sprintf("package %s has no row in the import table", p.Path),
				Fix:  "add its row to " + tableFile + " in the same commit",
			})
			continue
		}
		used[r] = true
	}
	for i := range t.rows {
		r := &t.rows[i]
		first := slices.IndexFunc(t.rows, func(o row) bool { return o.pattern == r.pattern })
		switch {
		case first != i:
			violations = append(violations, badRow(r.line, fmt.Sprintf("%s has a row already, at line %d", r.pattern, t.rows[first].line)))
		case !used[r] && !r.planned:
			violations = append(violations, Violation{
				Rule: RuleTable, File: tableFile, Line: r.line,
				What: fmt.Sprintf("the row of %s has no package", r.pattern),
				Fix:  "delete the row, or write (planned) after its name",
			})
		}
	}
	return violations
}
