package pipeline

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/forgeyard/forgeyard/internal/spelling"
)

// A reader turns nodes of YAML into values and gathers what is wrong.
type reader struct {
	found []Problem
	nodes int // read so far, those that aliases repeat included
	depth int
	over  bool // a bound was passed: nothing more is read
	lines []string
}

func (r *reader) wrong(code Code, at Pos, hint, format string, args ...any) {
	if !r.over {
		r.found = append(r.found, Problem{Code: code, At: at, What: fmt.Sprintf(format, args...), Hint: hint})
	}
}

// good reports whether nothing but advice was found.
func (r *reader) good() bool { return !r.over && len(Problems(r.found).Wrong()) == 0 }

// stop reports a bound that was passed and ends the reading.
func (r *reader) stop(at Pos, format string, args ...any) {
	r.wrong(CodeLimit, at, "", format, args...)
	r.over = true
}

// document reads the one document of a file, or reports why it has none.
func (r *reader) document(text []byte) *yaml.Node {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	switch {
	case len(text) > MaxFileBytes:
		r.stop(Pos{}, "the file has more than %d bytes", MaxFileBytes)
		return nil
	case !utf8.Valid(text):
		r.wrong(CodeSyntax, badUTF8(text), "save the file as UTF-8", "the file is not UTF-8")
		return nil
	}
	r.lines = strings.Split(string(text), "\n")
	var doc, more yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(text), yaml.WithUniqueKeys(false))
	if err == nil {
		err = loader.Load(&doc)
	}
	switch {
	case errors.Is(err, io.EOF), err == nil && (len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null"):
		r.wrong(CodeMissing, Pos{}, "write one with: forgeyard init", "the file has no pipeline in it")
		return nil
	case err != nil:
		r.syntax(text, err)
		return nil
	}
	if err := loader.Load(&more); !errors.Is(err, io.EOF) {
		at := Pos{}
		if len(more.Content) > 0 {
			at = posOf(more.Content[0])
		}
		r.wrong(CodeSyntax, at, "write each pipeline into a file of its own", "there is more than one document, or trouble behind the first")
		return nil
	}
	return doc.Content[0]
}

// syntax reports why a text is not YAML.
func (r *reader) syntax(text []byte, err error) {
	var load *yaml.LoadError
	if !errors.As(err, &load) {
		r.wrong(CodeSyntax, Pos{}, syntaxHint(err.Error()), "this is not YAML: %s", clip(err.Error()))
		return
	}
	at, hint := Pos{load.Mark.Line, load.Mark.Column}, syntaxHint(load.Message)
	if line, ok := lineOf(text, at.Line); ok && strings.HasPrefix(strings.TrimLeft(line, " "), "\t") {
		hint = "indent with spaces; YAML takes no tabs there"
	}
	r.wrong(CodeSyntax, at, hint, "this is not YAML: %s", load.Message)
}

// badUTF8 is the place of the first byte that is not UTF-8.
func badUTF8(text []byte) Pos {
	at := Pos{1, 1}
	for len(text) > 0 {
		c, n := utf8.DecodeRune(text)
		if c == utf8.RuneError && n == 1 {
			break
		}
		at.Column++
		if c == '\n' {
			at = Pos{at.Line + 1, 1}
		}
		text = text[n:]
	}
	return at
}

// stands reports whether a text stands in the file as it is, from a place to the end of it, so that places in it can be counted.
func (r *reader) stands(at Pos, text string) bool {
	if at.Line < 1 || at.Line > len(r.lines) {
		return false
	}
	line := []rune(r.lines[at.Line-1])
	return at.Column >= 1 && at.Column <= len(line) && strings.HasPrefix(string(line[at.Column-1:]), text)
}

func posOf(n *yaml.Node) Pos { return Pos{n.Line, n.Column} }

// follow returns the node that n stands for, and whether it can be read. It counts what is read, so that aliases of
// aliases cost no more than maxNodes.
func (r *reader) follow(n *yaml.Node) (*yaml.Node, bool) {
	if r.nodes++; r.nodes > maxNodes {
		r.stop(posOf(n), "the file has more than %d values, those that aliases repeat included", maxNodes)
	}
	if r.over {
		return nil, false
	}
	if n.Kind == yaml.AliasNode {
		n = n.Alias // what is not defined, the parser refuses; what goes round about ends at maxDepth
	}
	if tag := n.ShortTag(); n.Style&yaml.TaggedStyle != 0 && tag != "!!str" {
		r.wrong(CodeAnchor, posOf(n), "put the value into quotes if it begins with a !", "the tag %s has no meaning here", clip(tag))
		return nil, false
	}
	return n, true
}

// below runs f one level deeper, or reports that it is too deep.
func (r *reader) below(at Pos, f func()) {
	if r.depth >= maxDepth {
		r.stop(at, "this is nested more than %d deep", maxDepth)
		return
	}
	r.depth++
	f()
	r.depth--
}

// A pair is one key of a mapping, with its value.
type pair struct {
	name  string
	at    Pos
	value *yaml.Node
}

// pairs lists the keys of a mapping in their order, those that are merged in behind its own. A key of its own goes before
// a merged one, and of several merges the first that has it.
func (r *reader) pairs(n *yaml.Node) []pair {
	var all []pair
	var merged []*yaml.Node
	first := map[string]Pos{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, ok := r.follow(n.Content[i])
		if !ok {
			continue
		}
		at := posOf(n.Content[i])
		switch {
		case key.Kind != yaml.ScalarNode:
			r.wrong(CodeType, at, "write a name", "a key must be a text, not %s", kindOf(key))
		case key.ShortTag() == "!!merge":
			merged = append(merged, n.Content[i+1])
		case first[key.Value] != Pos{}:
			r.wrong(CodeDuplicate, at, "keep one of them", "the key %q is there twice, first on line %d", clip(key.Value), first[key.Value].Line)
		default:
			first[key.Value] = at
			all = append(all, pair{key.Value, at, n.Content[i+1]})
		}
	}
	for _, m := range merged {
		r.merge(m, first, &all, true)
	}
	return all
}

// merge adds the keys of a merged mapping, or of each in a list of them.
func (r *reader) merge(n *yaml.Node, first map[string]Pos, all *[]pair, lists bool) {
	at := posOf(n)
	n, ok := r.follow(n)
	if !ok {
		return
	}
	r.below(at, func() {
		switch {
		case n.Kind == yaml.MappingNode:
			for _, p := range r.pairs(n) {
				if first[p.name] == (Pos{}) {
					first[p.name] = p.at
					*all = append(*all, p)
				}
			}
		case n.Kind == yaml.SequenceNode && lists:
			for _, one := range n.Content {
				r.merge(one, first, all, false)
			}
		default:
			r.wrong(CodeAnchor, at, "merge keys, as in <<: *defaults", "only keys can be merged, not %s", kindOf(n))
		}
	})
}

// kindOf names what stands at a place, for people.
func kindOf(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.ShortTag() == "!!null":
		return "nothing"
	}
	return "one value"
}

// meant is a hint at the nearest of the known words, or at all of them where they are few.
func meant(word string, known []string) string {
	const few = 12
	if best := spelling.Nearest(word, known); best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if len(known) > 0 && len(known) <= few {
		return "known are " + strings.Join(known, ", ")
	}
	return ""
}
