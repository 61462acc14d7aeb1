// Package archtest holds the tree to its own architecture: it reads the import
// table in docs/architecture.md and reports every package, import, statement
// and file that breaks it.
//
// Two passes do the work. The first parses every Go file of the module, for
// every operating system and with its tests, and judges what syntax alone can
// tell: imports, doc comments, iota in the wire packages, sizes. The second
// type-checks the packages that the table calls pure and judges what they use:
// a clock is found behind an alias or a function value too, and a range over a
// map is found whatever the map's type is called.
//
// The package refuses to guess. A package that does not type-check, a row that
// cannot be read and a pure file that this build leaves out are violations.
// It starts no goroutine of its own and writes nothing.
package archtest

import (
	"cmp"
	"fmt"
	"slices"
)

// A Rule names one thing that archtest holds.
type Rule string

// The rules, each with a bad example under testdata/bad that breaks it.
const (
	RuleTable    Rule = "table"    // the import table can be read and agrees with the tree
	RuleImport   Rule = "import"   // a package imports what its row lists, and nothing else of ours
	RuleTestkit  Rule = "testkit"  // test kits are imported by tests only
	RuleDriver   Rule = "driver"   // quic-go and SQL drivers stay inside their one package
	RuleDoc      Rule = "doc"      // each package says what it is
	RuleIota     Rule = "iota"     // numbers on the wire are written out
	RuleSize     Rule = "size"     // files and functions stay short
	RuleOutside  Rule = "outside"  // pure packages import only what computes
	RuleClock    Rule = "clock"    // pure packages are told the time
	RuleRandom   Rule = "random"   // pure packages make nothing up
	RuleParallel Rule = "parallel" // pure packages start nothing and wait for nothing
	RuleOrder    Rule = "order"    // pure packages never depend on the order of a map
	RuleOutput   Rule = "output"   // pure packages print nothing
	RuleLoad     Rule = "load"     // pure packages type-check, on this system with all their files
)

// Rules lists every rule, in the order in which they are documented.
func Rules() []Rule {
	return []Rule{
		RuleTable, RuleImport, RuleTestkit, RuleDriver, RuleDoc, RuleIota, RuleSize,
		RuleOutside, RuleClock, RuleRandom, RuleParallel, RuleOrder, RuleOutput, RuleLoad,
	}
}

// A Violation is one place that breaks a rule.
type Violation struct {
	Rule Rule
	File string // slash-separated, relative to the module's root
	Line int
	What string // what is there
	Fix  string // what to do about it
}

// String renders the violation as an editor can follow it.
func (v Violation) String() string {
	return fmt.Sprintf("%s:%d: %s: %s; %s", v.File, v.Line, v.Rule, v.What, v.Fix)
}

// Check reports every violation in the module whose root is dir, sorted by
// place. The error is for a module that cannot be examined at all.
func Check(dir string) ([]Violation, error) {
	m, err := Load(dir)
	if err != nil {
		return nil, err
	}
	return m.Check()
}

// Check reports every violation in the module, sorted by place.
func (m *Module) Check() ([]Violation, error) {
	table, violations := readTable(m)
	if table != nil {
		violations = append(violations, table.checkRows(m)...)
		violations = append(violations, table.checkImports(m)...)
		pure, err := checkPure(m, table)
		if err != nil {
			return nil, err
		}
		violations = append(violations, pure...)
	}
	violations = append(violations, checkDrivers(m)...)
	violations = append(violations, checkDocs(m)...)
	violations = append(violations, checkIota(m)...)
	violations = append(violations, checkSizes(m)...)
	slices.SortFunc(violations, func(a, b Violation) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.What, b.What),
		)
	})
	return violations, nil
}
