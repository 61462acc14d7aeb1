package archtest

import (
	"fmt"
	"strings"
)

// checkImports holds every import of ours against the table.
func (t *table) checkImports(m *Module) []Violation {
	var violations []Violation
	for _, p := range m.Packages {
		r := t.find(p.Path)
		if r == nil {
			continue // checkRows has said so
		}
		for _, file := range p.Files {
			for _, imp := range file.Imports {
				if v, bad := t.checkImport(m, p, r, file, imp); bad {
					violations = append(violations, v)
				}
			}
		}
	}
	return violations
}

// checkImport judges one import declaration of a package with row r.
func (t *table) checkImport(m *Module, p *Package, r *row, file *File, imp Import) (Violation, bool) {
	v := Violation{Rule: RuleImport, File: file.Path, Line: imp.Line}
	target, ours := m.ours(imp.Path)
	if !ours {
		v.What = fmt.Sprintf("%s is not in the standard library and %s keeps to it", imp.Path, p.Path)
		v.Fix = "do without it, so that outsiders get no dependency with the package"
		return v, r.std && !file.Test && !isStd(imp.Path)
	}
	if target == p.Path {
		return v, false // its own external test
	}
	to := t.find(target)
	if to == nil {
		return v, false // checkRows has said so, or it does not compile
	}
	if to.test && !file.Test && !r.test && !matchAny(r.imports, target) {
		v.Rule = RuleTestkit
		v.What = fmt.Sprintf("%s is a test kit and %s is no test", target, file.Path)
		v.Fix = "import it from _test.go files only"
		return v, true
	}
	if t.allowed(r, to, target, file.Test) {
		return v, false
	}
	v.What = fmt.Sprintf("%s may not import %s", p.Path, target)
	v.Fix = "turn the dependency round, or change the row in " + tableFile + " in the same commit and defend it"
	return v, true
}

// allowed says whether the table lets row r import the package of row to.
func (t *table) allowed(r, to *row, target string, test bool) bool {
	switch {
	case matchAny(r.imports, target):
		return true
	case matchAny(r.imports, anything) && !to.test:
		return true
	case to.leaf && !r.std && (!r.pure || to.pure):
		return true
	case test:
		return to.test || matchAny(r.tests, target) || matchAny(r.tests, anything)
	default:
		return false
	}
}

// isStd says whether an import path belongs to the standard library: only
// there does the first element have no dot.
func isStd(imported string) bool {
	first, _, _ := strings.Cut(imported, "/")
	return !strings.Contains(first, ".")
}

// A home is a module that one part of the tree hides from the rest.
type home struct {
	module string // an import path or the beginning of one
	pkg    string // the package of ours that may import it, with all below
	why    string
}

// homes lists the dependencies that must stay replaceable.
var homes = []home{
	{"github.com/quic-go", "internal/transport/quic", "the rest of the tree speaks internal/transport"},
	{"database/sql", "internal/daemon/store", "the rest of the tree speaks the store's interface"},
	{"modernc.org/sqlite", "internal/daemon/store", "SQL stays in one package"},
	{"github.com/mattn/go-sqlite3", "internal/daemon/store", "SQL stays in one package"},
	{"github.com/ncruces/go-sqlite3", "internal/daemon/store", "SQL stays in one package"},
	{"zombiezen.com/go/sqlite", "internal/daemon/store", "SQL stays in one package"},
	{"github.com/jackc", "internal/daemon/store", "SQL stays in one package"},
	{"github.com/lib/pq", "internal/daemon/store", "SQL stays in one package"},
	{"github.com/go-sql-driver", "internal/daemon/store", "SQL stays in one package"},
}

// checkDrivers finds imports of those modules outside their home. Tests are
// held to it as well: a test that needs the driver belongs beside it.
func checkDrivers(m *Module) []Violation {
	var violations []Violation
	for _, p := range m.Packages {
		for _, file := range p.Files {
			for _, imp := range file.Imports {
				for _, h := range homes {
					if !match(h.module+"/**", imp.Path) || match(h.pkg+"/**", p.Path) {
						continue
					}
					violations = append(violations, Violation{
						Rule: RuleDriver, File: file.Path, Line: imp.Line,
						What: fmt.Sprintf("%s imports %s, which only %s may", p.Path, imp.Path, h.pkg),
						Fix:  h.why,
					})
				}
			}
		}
	}
	return violations
}
