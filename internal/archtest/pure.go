package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/tools/go/packages"
)

// checkPure judges every package whose row says pure.
func checkPure(m *Module, t *table) ([]Violation, error) {
	var violations []Violation
	var patterns []string
	for _, p := range m.Packages {
		r := t.find(p.Path)
		if r == nil || !r.pure {
			continue
		}
		violations = append(violations, checkOutside(m, p, r)...)
		patterns = append(patterns, "./"+p.Path)
	}
	if len(patterns) == 0 {
		return violations, nil
	}
	loaded, err := loadTypes(m, patterns)
	if err != nil {
		return nil, err
	}
	for _, pkg := range loaded {
		if problems := checkLoaded(m, pkg); len(problems) > 0 {
			violations = append(violations, problems...)
			continue // half a type-check judges nothing
		}
		violations = append(violations, checkUses(m, pkg)...)
	}
	return violations, nil
}

// loadTypes type-checks packages against the export data of what they import.
func loadTypes(m *Module, patterns []string) ([]*packages.Package, error) {
	config := &packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedImports |
			packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo,
		Dir: m.Dir,
		Env: append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off"),
	}
	loaded, err := packages.Load(config, patterns...)
	if err != nil {
		return nil, fmt.Errorf("type-check the pure packages: %w", err)
	}
	if len(loaded) != len(patterns) {
		return nil, fmt.Errorf("type-check the pure packages: asked for %d, got %d", len(patterns), len(loaded))
	}
	return loaded, nil
}

// checkLoaded finds what keeps a pure package from being judged as a whole.
func checkLoaded(m *Module, pkg *packages.Package) []Violation {
	var violations []Violation
	for _, name := range pkg.IgnoredFiles {
		if !strings.HasSuffix(name, "_test.go") {
			violations = append(violations, Violation{
				Rule: RuleLoad, File: m.relative(name), Line: 1,
				What: "a build constraint leaves the file out of this build",
				Fix:  "a pure package is the same on every system: move what differs to a shell",
			})
		}
	}
	for _, err := range pkg.Errors {
		if err.Kind == packages.ListError && len(pkg.TypeErrors) > 0 {
			continue // the go command's account of the same errors
		}
		file, line := m.split(err.Pos)
		violations = append(violations, Violation{
			Rule: RuleLoad, File: file, Line: line,
			What: fmt.Sprintf("%s does not type-check: %s", pkg.PkgPath, strings.Join(strings.Fields(err.Msg), " ")),
			Fix:  "mend it; nothing else of the package was judged",
		})
	}
	return violations
}

// split reads a position of the form file:line:column.
func (m *Module) split(pos string) (file string, line int) {
	name, rest, ok := strings.Cut(pos, ":")
	if !ok {
		return "go.mod", 1
	}
	number, _, _ := strings.Cut(rest, ":")
	if n, err := strconv.Atoi(number); err == nil {
		line = n
	}
	return m.relative(name), line
}

func (m *Module) relative(name string) string {
	if rel, err := filepath.Rel(m.Dir, name); err == nil {
		return filepath.ToSlash(rel)
	}
	return name
}

// A judge walks the syntax of one type-checked package.
type judge struct {
	module     *Module
	pkg        *packages.Package
	sorted     map[*ast.Ident]bool // maps.Keys and the like, called directly inside slices.Sorted
	violations []Violation
}

// checkUses judges what the code of a pure package does.
func checkUses(m *Module, pkg *packages.Package) []Violation {
	j := &judge{module: m, pkg: pkg, sorted: make(map[*ast.Ident]bool)}
	for _, file := range pkg.Syntax {
		ast.Inspect(file, func(n ast.Node) bool {
			j.node(n)
			return true
		})
	}
	return j.violations
}

func (j *judge) report(pos token.Pos, rule Rule, what, fix string) {
	at := j.pkg.Fset.Position(pos)
	j.violations = append(j.violations, Violation{
		Rule: rule, File: j.module.relative(at.Filename), Line: at.Line, What: what, Fix: fix,
	})
}

const (
	fixOutput   = "return the text"
	fixParallel = "return an effect and let the shell do it"
	fixOrder    = "range over slices.Sorted(maps.Keys(m)), or keep a slice beside the map"
)

// node reports concurrency, ranges over maps and channels, and forbidden names.
func (j *judge) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.GoStmt:
		j.report(n.Pos(), RuleParallel, "a go statement", fixParallel)
	case *ast.SelectStmt:
		j.report(n.Pos(), RuleParallel, "a select statement", fixParallel)
	case *ast.SendStmt:
		j.report(n.Pos(), RuleParallel, "a send on a channel", fixParallel)
	case *ast.ChanType:
		j.report(n.Pos(), RuleParallel, "a channel type", fixParallel)
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			j.report(n.Pos(), RuleParallel, "a receive from a channel", fixParallel)
		}
	case *ast.RangeStmt:
		ranged := j.pkg.TypesInfo.TypeOf(n.X)
		if someType(ranged, isMap) {
			j.report(n.Pos(), RuleOrder, "a range over a map, whose order differs from run to run", fixOrder)
		}
		if someType(ranged, isChan) {
			j.report(n.Pos(), RuleParallel, "a range over a channel", fixParallel)
		}
	case *ast.CallExpr:
		j.excuse(n)
	case *ast.Ident:
		j.name(n)
	}
}

// name reports the use of a name that pure code may not use.
func (j *judge) name(ident *ast.Ident) {
	object := j.pkg.TypesInfo.Uses[ident]
	if object == nil {
		return
	}
	b, ok := forbidden(object)
	if !ok || b.rule == RuleOrder && j.sorted[ident] {
		return
	}
	j.report(ident.Pos(), b.rule, "pure code uses "+types.ObjectString(object, shortName), b.fix)
}

// shortName qualifies names in messages as source code does.
func shortName(pkg *types.Package) string { return pkg.Name() }

// excuse notes the callee of a sequence that is sorted at once, as in
// slices.Sorted(maps.Keys(m)). The walk meets the outer call first.
func (j *judge) excuse(call *ast.CallExpr) {
	sorter := j.pkg.TypesInfo.Uses[callee(call)]
	if sorter == nil || sorter.Pkg() == nil || sorter.Pkg().Path() != "slices" || len(call.Args) == 0 {
		return
	}
	switch sorter.Name() {
	case "Sorted", "SortedFunc", "SortedStableFunc":
		if inner, ok := ast.Unparen(call.Args[0]).(*ast.CallExpr); ok {
			j.sorted[callee(inner)] = true
		}
	}
}

// callee is the identifier that a call's function ends in; nil if it has none.
func callee(call *ast.CallExpr) *ast.Ident {
	fun := ast.Unparen(call.Fun)
	switch f := fun.(type) { // explicit type arguments
	case *ast.IndexExpr:
		fun = f.X
	case *ast.IndexListExpr:
		fun = f.X
	}
	switch f := fun.(type) {
	case *ast.Ident:
		return f
	case *ast.SelectorExpr:
		return f.Sel
	}
	return nil
}

func isMap(t types.Type) bool  { _, ok := t.(*types.Map); return ok }
func isChan(t types.Type) bool { _, ok := t.(*types.Chan); return ok }

// someType says whether a type, or one that a type parameter may stand for,
// has an underlying type that satisfies is.
func someType(t types.Type, is func(types.Type) bool) bool {
	if t == nil {
		return false
	}
	if _, param := types.Unalias(t).(*types.TypeParam); !param {
		return is(t.Underlying())
	}
	constraint, ok := t.Underlying().(*types.Interface)
	return ok && someEmbedded(constraint, is)
}

func someEmbedded(constraint *types.Interface, is func(types.Type) bool) bool {
	for embedded := range constraint.EmbeddedTypes() {
		switch e := embedded.(type) {
		case *types.Union:
			for term := range e.Terms() {
				if is(term.Type().Underlying()) {
					return true
				}
			}
		default:
			if inner, ok := e.Underlying().(*types.Interface); ok {
				if someEmbedded(inner, is) {
					return true
				}
			} else if is(e.Underlying()) {
				return true
			}
		}
	}
	return false
}
