package pipeline

import (
	"cmp"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// A value is a kind of value that a file may hold: how it is read, and how it is described.
type value[V any] struct {
	shape *shape
	read  func(r *reader, n *yaml.Node) (V, bool) // false: what is wrong was reported
}

// A shape describes values of one kind, for the schema and for people.
type shape struct {
	name    string   // under which it is described once; empty where it is described in place
	kind    string   // string, boolean, integer, array, object, null; empty with either, and for anything
	words   []string // the only texts that it may be
	text    string   // what a text must look like, for people
	pattern string   // likewise, for programs: of a text, or of the names of an object's author
	least   int      // of an integer, of the items of an array, or of the names of an object's author
	most    int      // likewise
	items   *shape
	keys    []described // of an object
	values  *shape      // of an object with keys of its author's choice
	either  []*shape
	example string
}

// described is one key of an object.
type described struct {
	name, doc string
	required  bool
	later     bool
	shape     *shape
}

// scalar reads a single value through parse, whose error says what is wrong with the text.
func scalar[V any](s *shape, parse func(text string) (V, error)) value[V] {
	return value[V]{s, func(r *reader, n *yaml.Node) (v V, ok bool) {
		t, ok := r.text(n)
		if !ok {
			return v, false
		}
		v, err := parse(t.Value)
		if err != nil {
			r.wrong(CodeValue, t.At, "", "%v", err)
		}
		return v, err == nil
	}}
}

// text reads a scalar as it was written.
func (r *reader) text(n *yaml.Node) (Text, bool) {
	at := posOf(n)
	n, ok := r.follow(n)
	switch {
	case !ok:
		return Text{}, false
	case n.Kind != yaml.ScalarNode:
		r.wrong(CodeType, at, "", "there must be one value here, not %s", kindOf(n))
		return Text{}, false
	case n.ShortTag() == "!!null":
		r.wrong(CodeType, at, `leave the key out, or write "" for an empty text`, "there is no value here")
		return Text{}, false
	}
	quote := ""
	switch {
	case n.Style&yaml.SingleQuotedStyle != 0:
		quote = "'"
	case n.Style&yaml.DoubleQuotedStyle != 0:
		quote = `"`
	}
	return Text{Value: n.Value, At: at, quote: quote != "", block: !r.stands(at, quote+n.Value)}, true
}

// texts is any text.
var texts = value[Text]{&shape{kind: "string"}, (*reader).text}

// filled is a text that has something in it.
func filled(looks string) value[Text] {
	return value[Text]{&shape{kind: "string", text: looks}, func(r *reader, n *yaml.Node) (Text, bool) {
		t, ok := r.text(n)
		if ok && strings.TrimSpace(t.Value) == "" {
			r.wrong(CodeValue, t.At, "", "this is empty")
			return t, false
		}
		return t, ok
	}}
}

// choice is one of a few words.
func choice[V any](words []string, of func(word string) V) value[V] {
	return value[V]{&shape{kind: "string", words: words}, func(r *reader, n *yaml.Node) (v V, ok bool) {
		t, ok := r.text(n)
		if !ok {
			return v, false
		}
		if !slices.Contains(words, t.Value) {
			r.wrong(CodeValue, t.At, meant(t.Value, words), "%q cannot stand here", clip(t.Value))
			return v, false
		}
		return of(t.Value), true
	}}
}

// flags are true and false, and no other words for them.
var flags = value[bool]{&shape{kind: "boolean"}, func(r *reader, n *yaml.Node) (bool, bool) {
	t, ok := r.text(n)
	if ok && t.Value != "true" && t.Value != "false" {
		r.wrong(CodeValue, t.At, "write true or false", "%q is neither true nor false", clip(t.Value))
		return false, false
	}
	return t.Value == "true", ok
}}

// whole is a whole number within bounds.
func whole(least, most int) value[int] {
	return value[int]{&shape{kind: "integer", least: least, most: most}, func(r *reader, n *yaml.Node) (int, bool) {
		t, ok := r.text(n)
		if !ok {
			return 0, false
		}
		i, err := strconv.Atoi(t.Value)
		if err != nil || i < least || i > most {
			r.wrong(CodeValue, t.At, "", "%q is no whole number from %d to %d", clip(t.Value), least, most)
			return 0, false
		}
		return i, true
	}}
}

// span is a duration of at least a second.
func span(most time.Duration) value[time.Duration] {
	return value[time.Duration]{&shape{kind: "string", text: "a duration with its unit", example: "20m"}, func(r *reader, n *yaml.Node) (time.Duration, bool) {
		t, ok := r.text(n)
		if !ok {
			return 0, false
		}
		d, err := forge.ParseDuration(t.Value)
		switch {
		case err != nil:
			hint := ""
			if _, e := strconv.Atoi(t.Value); e == nil {
				hint = "write " + t.Value + "m if minutes are meant"
			}
			r.wrong(CodeValue, t.At, hint, "%v", err)
		case d < time.Second || d > most || d%time.Millisecond != 0:
			r.wrong(CodeValue, t.At, "", "%q is not within 1s and %v", clip(t.Value), most)
		default:
			return d, true
		}
		return 0, false
	}}
}

// size is an amount of bytes.
func size(most forge.Bytes) value[forge.Bytes] {
	return value[forge.Bytes]{&shape{kind: "string", text: "a size with its unit", example: "4GiB"}, func(r *reader, n *yaml.Node) (forge.Bytes, bool) {
		t, ok := r.text(n)
		if !ok {
			return 0, false
		}
		b, err := forge.ParseBytes(t.Value)
		if err == nil && b > 0 && b <= most {
			return b, true
		}
		if err == nil {
			r.wrong(CodeValue, t.At, "", "%q is not within 1 B and %v", clip(t.Value), most)
		} else {
			r.wrong(CodeValue, t.At, "", "%v", err)
		}
		return 0, false
	}}
}

// cores is a number of processors.
var cores = scalar(&shape{kind: "string", text: "a number of cores", example: "2"}, func(text string) (forge.MilliCPU, error) {
	n, err := forge.ParseCPU(text)
	if err == nil && n == 0 {
		err = errors.New("a job needs more than no core")
	}
	return n, err
})

// list is a list of at most so many values.
func list[V any](v value[V], most int) value[[]V] {
	return value[[]V]{&shape{kind: "array", items: v.shape, most: most}, func(r *reader, n *yaml.Node) ([]V, bool) {
		at := posOf(n)
		n, ok := r.follow(n)
		switch {
		case !ok:
			return nil, false
		case n.Kind != yaml.SequenceNode:
			r.wrong(CodeType, at, "write a list, as in [a, b]", "there must be a list here, not %s", kindOf(n))
			return nil, false
		case len(n.Content) > most:
			r.wrong(CodeLimit, at, "", "the list has %d items, more than %d", len(n.Content), most)
			return nil, false
		}
		items := make([]V, 0, len(n.Content))
		r.below(at, func() {
			for _, c := range n.Content {
				if v, good := v.read(r, c); good {
					items = append(items, v)
				} else {
					ok = false
				}
			}
		})
		return items, ok && !r.over
	}}
}

// some is a list, or one item of it by itself.
func some[V any](v value[V], most int) value[[]V] {
	many := list(v, most)
	return either(
		map[yaml.Kind]value[[]V]{yaml.ScalarNode: as(v, func(v V) []V { return []V{v} }), yaml.SequenceNode: many, yaml.MappingNode: as(v, func(v V) []V { return []V{v} })},
		[]*shape{v.shape, many.shape})
}

// as reads one kind of value as another.
func as[V, W any](v value[V], to func(V) W) value[W] {
	return value[W]{v.shape, func(r *reader, n *yaml.Node) (w W, ok bool) {
		got, ok := v.read(r, n)
		if !ok {
			return w, false
		}
		return to(got), true
	}}
}

// either reads by what stands there: one value, a list, or keys.
func either[V any](by map[yaml.Kind]value[V], shapes []*shape) value[V] {
	return value[V]{&shape{either: shapes}, func(r *reader, n *yaml.Node) (v V, ok bool) {
		real := n
		if n.Kind == yaml.AliasNode {
			real = n.Alias
		}
		if read, known := by[real.Kind]; known {
			return read.read(r, n)
		}
		r.wrong(CodeType, posOf(n), "", "%s cannot stand here", kindOf(real))
		return v, false
	}}
}

// A key is one key of an object that fills a T.
type key[T any] struct {
	described
	read func(r *reader, n *yaml.Node, into *T)
}

// matches reports whether a name is that of the key. A key that ends in a star is for all that begin so.
func (d described) matches(name string) bool {
	begin, many := strings.CutSuffix(d.name, "*")
	return name == d.name || many && strings.HasPrefix(name, begin)
}

// field is a key whose value goes into a field.
func field[T, V any](name, doc string, v value[V], of func(*T) *V) key[T] {
	return key[T]{described{name: name, doc: doc, shape: v.shape}, func(r *reader, n *yaml.Node, into *T) {
		if got, ok := v.read(r, n); ok {
			*of(into) = got
		}
	}}
}

// must makes a key one that has to be there.
func must[T any](k key[T]) key[T] {
	k.required = true
	return k
}

// later is a key that is known and not carried out yet.
func later[T any](name, doc string) key[T] {
	return key[T]{described: described{name: name, doc: doc, later: true, shape: &shape{}}}
}

// object is a mapping with known keys.
func object[T any](name string, keys []key[T]) value[T] {
	s := &shape{name: name, kind: "object"}
	names := make([]string, 0, len(keys))
	for _, k := range keys {
		s.keys = append(s.keys, k.described)
		names = append(names, k.name)
	}
	return value[T]{s, func(r *reader, n *yaml.Node) (into T, ok bool) {
		before := len(r.found)
		at := posOf(n)
		n, ok = r.follow(n)
		switch {
		case !ok:
			return into, false
		case n.Kind != yaml.MappingNode:
			r.wrong(CodeType, at, "known are "+strings.Join(names, ", "), "there must be keys here, not %s", kindOf(n))
			return into, false
		}
		r.below(at, func() { fill(r, n, at, keys, names, &into) })
		return into, len(r.found) == before && !r.over
	}}
}

// fill reads the keys of a mapping. What can be read is, whatever is wrong beside it.
func fill[T any](r *reader, n *yaml.Node, at Pos, keys []key[T], names []string, into *T) {
	there := map[string]bool{}
	for _, p := range r.pairs(n) {
		i := slices.IndexFunc(keys, func(k key[T]) bool { return k.matches(p.name) })
		switch {
		case i < 0:
			r.wrong(CodeUnknownKey, p.at, unknownKey(p.name, names), "the key %q is not known here", clip(p.name))
			continue
		case keys[i].later:
			r.wrong(CodeLater, p.at, "leave it out", "%q cannot be used yet", p.name)
		default:
			keys[i].read(r, p.value, into)
		}
		there[p.name] = true
	}
	for _, k := range keys {
		if k.required && !there[k.name] {
			r.wrong(CodeMissing, at, k.name+" says: "+k.doc, "the key %q is missing", k.name)
		}
	}
}

// mapping is an object with keys of its author's choice, in their order.
func mapping[V any](v value[V], check func(name string) string, most int) value[[]named[V]] {
	return value[[]named[V]]{&shape{kind: "object", values: v.shape, most: most}, func(r *reader, n *yaml.Node) ([]named[V], bool) {
		at := posOf(n)
		n, ok := r.follow(n)
		switch {
		case !ok:
			return nil, false
		case n.Kind != yaml.MappingNode:
			r.wrong(CodeType, at, "", "there must be names with values here, not %s", kindOf(n))
			return nil, false
		}
		var all []named[V]
		r.below(at, func() {
			pairs := r.pairs(n)
			if len(pairs) > most {
				r.wrong(CodeLimit, at, "", "there are %d names here, more than %d", len(pairs), most)
				ok = false
				return
			}
			for _, p := range pairs {
				if why := check(p.name); why != "" {
					r.wrong(CodeValue, p.at, why, "%q cannot be a name here", clip(p.name))
					ok = false
				}
				got, good := v.read(r, p.value)
				ok = ok && good
				all = append(all, named[V]{p.name, p.at, got, good})
			}
		})
		return all, ok && !r.over
	}}
}

// named is a value with its name.
type named[V any] struct {
	name  string
	at    Pos
	value V
	good  bool // the value is all that was written
}

// codes is a list of exit codes, in ascending order.
func codes() value[[]uint8] {
	return as(some(whole(1, 255), forge.MaxExitCodes), func(all []int) []uint8 {
		out := make([]uint8, 0, len(all))
		for _, c := range all {
			out = append(out, uint8(c))
		}
		slices.SortFunc(out, cmp.Compare[uint8])
		return slices.Compact(out)
	})
}
