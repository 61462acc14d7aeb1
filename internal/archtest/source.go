package archtest

import (
	"fmt"
	"go/ast"
	"strings"
)

// wireRoot is the folder whose numbers go over the wire.
const wireRoot = "internal/protocol"

// checkDocs finds packages without a doc comment. A library's comment begins
// "Package name"; a command's says in its own words what the command does.
func checkDocs(m *Module) []Violation {
	var violations []Violation
	for _, p := range m.Packages {
		if p.documented() {
			continue
		}
		violations = append(violations, Violation{
			Rule: RuleDoc, File: p.Files[0].Path, Line: m.line(p.Files[0].Syntax.Package),
			What: fmt.Sprintf("package %s has no doc comment", p.Path),
			Fix:  fmt.Sprintf("begin one file with %q: what it does, what it refuses, who owns its goroutines", "// Package "+p.Files[0].Syntax.Name.Name+" …"),
		})
	}
	return violations
}

func (p *Package) documented() bool {
	for _, file := range p.Files {
		name := file.Syntax.Name.Name
		doc := strings.TrimSpace(file.Syntax.Doc.Text())
		if doc != "" && (name == "main" || strings.HasPrefix(doc, "Package "+name+" ")) {
			return true
		}
	}
	return false
}

// checkIota finds iota in the wire packages. A line put into the middle of an
// iota block renumbers what peers of the last release already say.
func checkIota(m *Module) []Violation {
	var violations []Violation
	for _, p := range m.Packages {
		if !match(wireRoot+"/**", p.Path) {
			continue
		}
		for _, file := range p.Files {
			ast.Inspect(file.Syntax, func(n ast.Node) bool {
				if ident, ok := n.(*ast.Ident); ok && ident.Name == "iota" {
					violations = append(violations, Violation{
						Rule: RuleIota, File: file.Path, Line: m.line(ident.Pos()),
						What: "iota numbers a wire value by its place in the file",
						Fix:  "write the number out",
					})
				}
				return true
			})
		}
	}
	return violations
}
