package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common"
	celast "cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/parser"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/spelling"
)

// Bounds of one expression.
const (
	maxExpression     = 4096 // bytes
	maxExpressionDeep = 64
	maxCost           = 100_000 // steps of an evaluation, as CEL counts them
)

// A name is something that expressions may use, with its type. Names hold dots: what is not declared is not there, which
// is told when the file is read and not when the job runs.
type name struct {
	text string
	kind *cel.Type
}

// Names of what expressions read besides those of a scope. The status names stand behind success() and the like.
const (
	nameSuccess   = "status.success"
	nameFailure   = "status.failure"
	nameAlways    = "status.always"
	nameCancelled = "status.cancelled"
	nameHashes    = "status.hashes"
)

// hashKey joins the patterns of one hashFiles. No pattern holds a line feed.
func hashKey(patterns []string) string { return strings.Join(patterns, "\n") }

// base is what every expression may use.
var base = sync.OnceValues(func() (*cel.Env, error) {
	status := func(function, name string) cel.Macro {
		return cel.GlobalMacro(function, 0, func(h parser.ExprHelper, _ celast.Expr, _ []celast.Expr) (celast.Expr, *common.Error) {
			return h.NewIdent(name), nil
		})
	}
	options := []cel.EnvOption{
		cel.StdLib(), cel.ClearMacros(), // no loops
		cel.Macros(
			status("success", nameSuccess), status("failure", nameFailure), status("always", nameAlways), status("cancelled", nameCancelled),
			cel.GlobalVarArgMacro("hashFiles", expandHash),
		),
		cel.ParserExpressionSizeLimit(maxExpression), cel.ParserRecursionLimit(maxExpressionDeep),
		cel.Variable(nameHashes, cel.MapType(cel.StringType, cel.StringType)),
	}
	for _, n := range []string{nameSuccess, nameFailure, nameAlways, nameCancelled, "git.dirty"} {
		options = append(options, cel.Variable(n, cel.BoolType))
	}
	for _, n := range gitNames {
		options = append(options, cel.Variable("git."+n, cel.StringType))
	}
	return cel.NewCustomEnv(options...)
})

// gitNames are the texts that git says of a source.
var gitNames = []string{"sha", "ref", "branch", "tag", "event"}

// expandHash makes a look-up of hashFiles, whose patterns have to be known before anything runs.
func expandHash(h parser.ExprHelper, call celast.Expr, args []celast.Expr) (celast.Expr, *common.Error) {
	var patterns []string
	for _, a := range args {
		s, ok := "", a.Kind() == celast.LiteralKind
		if ok {
			s, ok = a.AsLiteral().Value().(string)
		}
		if !ok || !validPattern(s) {
			return nil, h.NewError(a.ID(), "hashFiles takes patterns of files, as in hashFiles('go.sum')")
		}
		patterns = append(patterns, s)
	}
	if len(patterns) == 0 {
		return nil, h.NewError(call.ID(), "hashFiles needs a pattern, as in hashFiles('go.sum')")
	}
	return h.NewCall("_[_]", h.NewIdent(nameHashes), h.NewLiteral(types.String(hashKey(patterns)))), nil
}

// A scope is the names that the expressions of one job may use.
type scope struct {
	names   []name
	dashed  []string // names of the author's with a dash or a dot in them, which CEL would take apart
	many    []string // needed jobs with several legs, whose outputs have no name
	partial bool     // not everything could be read that may declare a name
	env     *cel.Env
}

// An expression is CEL that has been compiled.
type expression struct {
	program cel.Program
	status  bool     // it uses success() or the like
	names   []string // that it reads, sorted
	hashes  []string // patterns of its hashFiles, joined
	kind    *cel.Type
}

// compile compiles a text, or reports what is wrong with it. allowed says which names may stand where the text does; what it
// refuses exists elsewhere.
func (r *reader) compile(s *scope, t Text, at func(offset int) Pos, allowed func(name string) bool) *expression {
	if s.env == nil {
		env, err := s.environment()
		if err != nil {
			r.wrong(CodeExpression, t.At, "", "%v", err)
			return nil
		}
		s.env = env
	}
	ast, issues := s.env.Compile(s.undash(t.Value))
	if issues.Err() != nil {
		first := map[string]bool{} // what follows from one mistake is one mistake
		for _, e := range issues.Errors() {
			what, hint, offset := s.explain(t.Value, e)
			if what == "" {
				continue
			}
			if kind, _, _ := strings.Cut(what, ":"); !first[kind] {
				first[kind] = true
				r.wrong(CodeExpression, at(offset), hint, "%s", what)
			}
		}
		return nil
	}
	x := &expression{kind: ast.OutputType()}
	references := ast.NativeRep().ReferenceMap()
	for _, id := range slices.Sorted(maps.Keys(references)) {
		if n := references[id].Name; n != "" {
			x.names = append(x.names, n)
		}
	}
	slices.Sort(x.names)
	x.names = slices.Compact(x.names)
	for _, n := range x.names {
		x.status = x.status || strings.HasPrefix(n, "status.") && n != nameHashes
		if !allowed(n) {
			r.wrong(CodeExpression, t.At, "", "%s cannot be used here", spoken(n))
			return nil
		}
	}
	x.hashes = hashesIn(ast.NativeRep().Expr())
	program, err := s.env.Program(ast, cel.CostLimit(maxCost))
	if err != nil {
		r.wrong(CodeExpression, t.At, "", "%v", err)
		return nil
	}
	x.program = program
	return x
}

// hashesIn lists what expandHash has left in an expression.
func hashesIn(root celast.Expr) (all []string) {
	celast.PostOrderVisit(root, celast.NewExprVisitor(func(e celast.Expr) {
		if e.Kind() != celast.CallKind || len(e.AsCall().Args()) != 2 {
			return
		}
		args := e.AsCall().Args()
		if args[0].Kind() == celast.IdentKind && args[0].AsIdent() == nameHashes && args[1].Kind() == celast.LiteralKind {
			if s, ok := args[1].AsLiteral().Value().(string); ok {
				all = append(all, s)
			}
		}
	}))
	return all
}

// spoken is a name as its author writes it.
func spoken(n string) string {
	switch f, ok := strings.CutPrefix(n, "status."); {
	case n == nameHashes:
		return "hashFiles()"
	case ok:
		return f + "()"
	}
	return n
}

func (s *scope) environment() (*cel.Env, error) {
	env, err := base()
	if err != nil {
		return nil, err
	}
	options := make([]cel.EnvOption, 0, len(s.names))
	for _, n := range s.names {
		options = append(options, cel.Variable(n.text, n.kind))
	}
	return env.Extend(options...)
}

// undash writes each dash in a name of the author's as an underscore: needs.build-linux.result is a name here, and to CEL it
// would be a difference. Nothing changes its place. Texts within quotes stay.
func (s *scope) undash(text string) string {
	if len(s.dashed) == 0 {
		return text
	}
	out, quote := []byte(text), byte(0)
	for i := 0; i < len(out); i++ {
		switch c := out[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '.':
			for _, d := range s.dashed {
				if rest := string(out[i+1:]); strings.HasPrefix(rest, d) && !continues(rest, len(d)) {
					copy(out[i+1:], underscored(d))
				}
			}
		}
	}
	return string(out)
}

// continues reports whether a name goes on at i.
func continues(s string, i int) bool {
	return i < len(s) && (s[i] == '_' || s[i] == '-' || '0' <= s[i] && s[i] <= '9' || 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z')
}

// underscored is a name as expressions and variables can hold it.
func underscored(name string) string { return strings.NewReplacer("-", "_", ".", "_").Replace(name) }

// explain puts what CEL says about an expression into our words, or says nothing where that follows from another mistake.
func (s *scope) explain(text string, e *cel.Error) (what, hint string, offset int) {
	offset = offsetOf(text, e.Location)
	if !strings.Contains(e.Message, "undeclared reference") {
		return "this expression does not compile: " + clip(e.Message), "", offset
	}
	used, offset := dotted(s.undash(text), offset)
	known := make([]string, 0, len(s.names)+len(gitNames)+1)
	for _, n := range gitNames {
		known = append(known, "git."+n)
	}
	known = append(known, "git.dirty")
	for _, n := range s.names {
		known = append(known, n.text)
	}
	group, _, grouped := strings.Cut(used, ".")
	near := slices.DeleteFunc(slices.Clone(known), func(n string) bool { return !strings.HasPrefix(n, group+".") })
	if s.partial && slices.Contains([]string{"matrix", "needs", "env", "steps"}, group) {
		return "", "", 0 // it may be among what could not be read
	}
	switch best := spelling.Nearest(used, known); {
	case slices.ContainsFunc(s.many, func(job string) bool { return strings.HasPrefix(used, "needs."+underscored(job)+".outputs.") }):
		hint = "that job has several legs, and each may give another value; keep it as an artifact"
	case best != "":
		hint = fmt.Sprintf("did you mean %q?", best)
	case grouped && len(near) > 0:
		hint = "known are " + strings.Join(near[:min(len(near), 8)], ", ")
	case group == "matrix":
		hint = "the job has no matrix"
	case group == "needs":
		hint = "the job needs nothing; name the job under needs"
	case group == "env":
		hint = "env knows what the file and the job set under env"
	case group == "steps":
		hint = "what steps write can be used under outputs, by the id of the step"
	default:
		hint = "an expression knows git, matrix, needs and env, and success(), failure(), always() and cancelled()"
	}
	return fmt.Sprintf("%q is not known here", clip(used)), hint, offset
}

// dotted is the name with dots that goes through an offset, and where it begins.
func dotted(text string, offset int) (string, int) {
	part := func(c byte) bool { return c == '.' || continues(string(c), 0) && c != '-' }
	from, to := min(offset, len(text)), min(offset, len(text))
	for from > 0 && part(text[from-1]) {
		from--
	}
	for to < len(text) && part(text[to]) {
		to++
	}
	return strings.Trim(text[from:to], "."), from
}

// offsetOf is the byte of a place that CEL names by line and column.
func offsetOf(text string, at common.Location) int {
	offset := 0
	for line := 1; line < at.Line(); line++ {
		n := strings.IndexByte(text[offset:], '\n')
		if n < 0 {
			return offset
		}
		offset += n + 1
	}
	for i := range text[offset:] {
		if i >= at.Column() {
			return offset + i
		}
	}
	return min(offset+max(at.Column(), 0), len(text))
}

// place returns the function that finds an offset of a part of a text in the file, as far as that can be counted.
func (t Text) place(skip int) func(offset int) Pos {
	return func(offset int) Pos {
		if t.block {
			return t.At
		}
		p := Pos{t.At.Line, t.At.Column + utf8.RuneCountInString(t.Value[:min(skip+offset, len(t.Value))])}
		if t.quote {
			p.Column++
		}
		return p
	}
}

// value evaluates an expression.
func (x *expression) value(v map[string]any) (any, error) {
	out, _, err := x.program.Eval(v)
	if err != nil {
		return nil, fmt.Errorf("the expression has no value: %w", err)
	}
	return out.Value(), nil
}

func (x *expression) bool(v map[string]any) (bool, error) {
	value, err := x.value(v)
	if err != nil {
		return false, err
	}
	yes, _ := value.(bool) // the compiler has seen to it
	return yes, nil
}

// fold makes of a step's condition what an agent can follow (D05): it is tried for both ways in which the steps before may
// have ended. Without success() or the like it holds after success alone. A nil one is success().
func (x *expression) fold(v map[string]any) (forge.When, error) {
	if x == nil {
		return forge.WhenSuccess, nil
	}
	if _, trial := v[nameTrial]; trial {
		return forge.WhenSuccess, nil
	}
	status{success: true}.in(v)
	good, err := x.bool(v)
	if err != nil {
		return 0, err
	}
	status{failure: true}.in(v)
	bad, err := x.bool(v)
	switch {
	case err != nil:
		return 0, err
	case good && !x.status:
		return forge.WhenSuccess, nil
	case good && bad:
		return forge.WhenAlways, nil
	case good:
		return forge.WhenSuccess, nil
	case bad && x.status:
		return forge.WhenFailure, nil
	}
	return forge.WhenNever, nil
}
