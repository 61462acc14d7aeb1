package pipeline

import (
	"fmt"
	"slices"
	"strings"
)

const (
	templateBegin = "${{"
	templateEnd   = "}}"
)

// A piece is a part of a text: as it stands, or an expression whose value stands there.
type piece struct {
	text string
	x    *expression
}

// template compiles the expressions in a text. Without ${{ it is one piece.
func (r *reader) template(s *scope, t *Text, allowed func(name string) bool) {
	t.parts = r.pieces(s, *t, allowed)
}

func (r *reader) pieces(s *scope, t Text, allowed func(name string) bool) (all []piece) {
	rest, skip := t.Value, 0
	for {
		i := strings.Index(rest, templateBegin)
		if i < 0 {
			return append(all, piece{text: rest})
		}
		all = append(all, piece{text: rest[:i]})
		inner := rest[i+len(templateBegin):]
		n := strings.Index(inner, templateEnd)
		if n < 0 {
			r.wrong(CodeExpression, t.place(skip)(i), "close it with }}", "%s is never closed", templateBegin)
			return all
		}
		source := Text{Value: inner[:n], At: t.At, block: t.block, quote: t.quote}
		if x := r.compile(s, source, t.place(skip+i+len(templateBegin)), allowed); x != nil {
			if k := x.kind.TypeName(); k != "string" && k != "int" && k != "bool" && k != "dyn" {
				r.wrong(CodeExpression, t.place(skip)(i), "", "the value here would be a %s; it must be a text, a number or true or false", k)
			}
			all = append(all, piece{x: x})
		}
		rest, skip = inner[n+len(templateEnd):], skip+i+len(templateBegin)+n+len(templateEnd)
	}
}

// literal reports a text in which expressions have no place.
func (r *reader) literal(t Text, hint string) {
	if i := strings.Index(t.Value, templateBegin); i >= 0 {
		r.wrong(CodeExpression, t.place(0)(i), hint, "nothing is put in between %s and %s here", templateBegin, templateEnd)
	}
}

// fill returns the text with the values of its expressions.
func (t Text) fill(v map[string]any) (string, error) {
	if t.parts == nil {
		return t.Value, nil
	}
	if _, trial := v[nameTrial]; trial && slices.ContainsFunc(t.parts, func(p piece) bool { return p.x != nil }) {
		return fmt.Sprintf("x%d-%d", t.At.Line, t.At.Column), nil
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.x == nil {
			b.WriteString(p.text)
			continue
		}
		value, err := p.x.value(v)
		if err != nil {
			return "", err
		}
		fmt.Fprint(&b, value)
	}
	return b.String(), nil
}

// hashesOf lists the patterns of every hashFiles in the keys of caches, joined, each once.
func hashesOf(f *File) (all []string) {
	for _, j := range f.Jobs {
		for _, c := range j.Caches {
			for _, t := range append([]Text{c.Key}, c.Fallback...) {
				for _, p := range t.parts {
					if p.x != nil {
						all = append(all, p.x.hashes...)
					}
				}
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
