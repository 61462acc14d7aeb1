package archtest

import (
	"fmt"
	"go/types"
	"slices"
	"strings"
)

// pureStd is the part of the standard library that only computes. Whatever is
// not on it needs a word in the last column of the package's row.
var pureStd = []string{
	"bytes", "cmp", "container/heap", "container/list", "encoding", "encoding/base32",
	"encoding/base64", "encoding/binary", "encoding/hex", "errors", "fmt", "iter", "maps",
	"math", "math/bits", "math/cmplx", "net/netip", "path", "reflect", "slices", "sort",
	"strconv", "strings", "sync", "time", "unicode", "unicode/utf16", "unicode/utf8",
}

// checkOutside finds imports of a pure package that reach outside: files,
// sockets, contexts, random sources, anything not known to only compute.
func checkOutside(m *Module, p *Package, r *row) []Violation {
	var violations []Violation
	for _, file := range p.Files {
		if file.Test {
			continue
		}
		for _, imp := range file.Imports {
			if _, ours := m.ours(imp.Path); ours || slices.Contains(pureStd, imp.Path) || matchAny(r.others, imp.Path) {
				continue
			}
			violations = append(violations, Violation{
				Rule: RuleOutside, File: file.Path, Line: imp.Line,
				What: fmt.Sprintf("%s is pure and imports %s", p.Path, imp.Path),
				Fix:  "let the shell do it and pass the value in, or name the import in the last cell of the row",
			})
		}
	}
	return violations
}

// A ban is a set of names that pure code may not use, from a package that it
// may import.
type ban struct {
	pkg   string
	names string // separated by spaces; a method is written Type.Method
	rule  Rule
	fix   string
}

// bans is what the allowed packages offer besides computing.
var bans = []ban{
	{
		"time", "Now Since Until Sleep After AfterFunc NewTimer NewTicker Tick Timer Ticker",
		RuleClock, "take now as an argument",
	},
	{"time", "Local Time.Local LoadLocation", RuleClock, "use UTC: the zone of this machine is no input"},
	{"github.com/oklog/ulid/v2", "Now", RuleClock, "take now as an argument"},
	{"github.com/oklog/ulid/v2", "Make New MustNew DefaultEntropy", RuleRandom, "let the id come in with the event"},
	{"maps", "All Keys Values", RuleOrder, fixOrder},
	{"reflect", "Value.MapKeys Value.MapRange Value.Seq Value.Seq2", RuleOrder, fixOrder},
	{"reflect", "Select MakeChan", RuleParallel, fixParallel},
	{"iter", "Pull Pull2", RuleParallel, fixParallel},
	{"fmt", "Print Printf Println Scan Scanf Scanln", RuleOutput, fixOutput},
	{"log/slog", "Debug Info Warn Error Log LogAttrs Default New Logger", RuleOutput, fixOutput},
}

// onceOnly is what pure code may use of package sync: tables that are built on
// first use. Locks would mean that somebody else is there.
var onceOnly = []string{"Once", "Once.Do", "OnceFunc", "OnceValue", "OnceValues"}

// forbidden returns the ban on an object, if pure code may not use it.
func forbidden(object types.Object) (ban, bool) {
	if object.Pkg() == nil {
		builtin, ok := object.(*types.Builtin)
		return ban{rule: RuleOutput, fix: fixOutput}, ok && (builtin.Name() == "print" || builtin.Name() == "println")
	}
	name := objectName(object)
	if name == "" {
		return ban{}, false // a local variable, a field, a package name
	}
	pkg := object.Pkg().Path()
	if pkg == "sync" && !slices.Contains(onceOnly, name) {
		return ban{rule: RuleParallel, fix: "leave locking to the shell: pure code has one caller at a time"}, true
	}
	for _, b := range bans {
		if b.pkg == pkg && slices.Contains(strings.Fields(b.names), name) {
			return b, true
		}
	}
	return ban{}, false
}

// objectName is the name of a package-level object, or Type.Method.
func objectName(object types.Object) string {
	if object.Parent() == object.Pkg().Scope() {
		return object.Name()
	}
	fn, ok := object.(*types.Func)
	if !ok {
		return ""
	}
	recv := fn.Signature().Recv()
	if recv == nil {
		return ""
	}
	t := recv.Type()
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	if named, ok := t.(*types.Named); ok {
		return named.Obj().Name() + "." + fn.Name()
	}
	return ""
}
