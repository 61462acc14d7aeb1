package postcard

import (
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// Schema describes what a Go type is on the wire, on one line and in the language of ParseType:
// every field with its name, order, kind and limit, every variant with its discriminant. Two
// types with the same description have the same encoding and the same limits, and a change of
// either shows; so its hash freezes a message. A recursive struct stands as @Name, its definition
// behind " where ". Schema fails as encoding would if the type has no plan.
//
//	struct{Lease:array<u8,16>,Retry:option<u32>,Paths:seq<string<max=1024>;max=64>}
func Schema(t reflect.Type) (string, error) {
	if t == nil {
		return "", badValue("describe", "nil type")
	}
	p, err := planOf(t)
	if err != nil {
		return "", err
	}
	return p.root.schema(), nil
}

func (o *op) schema() string {
	s := &schema{open: map[*op]bool{}, seen: map[*op]bool{}, names: map[*op]string{}}
	s.find(o)
	s.typ(o, true)
	for i, named := range s.recursive {
		if i == 0 {
			s.out.WriteString(" where")
		}
		s.out.WriteString(" " + s.names[named] + "=")
		s.typ(named, false)
	}
	return s.out.String()
}

type schema struct {
	out       strings.Builder
	open      map[*op]bool // being walked
	seen      map[*op]bool
	recursive []*op // found again while being walked, in that order
	names     map[*op]string
}

// find names the ops that contain themselves.
func (s *schema) find(o *op) {
	if s.open[o] && s.names[o] == "" {
		s.names[o] = s.unused(o)
		s.recursive = append(s.recursive, o)
	}
	if s.seen[o] {
		return
	}
	s.seen[o], s.open[o] = true, true
	for _, part := range o.parts() {
		s.find(part)
	}
	s.open[o] = false
}

// unused numbers types of the same name, which may come from different packages.
func (s *schema) unused(o *op) string {
	base := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' {
			return r
		}
		return -1
	}, o.name)
	name := base
	for n := 2; s.taken(name); n++ {
		name = base + strconv.Itoa(n)
	}
	return name
}

func (s *schema) taken(name string) bool {
	for _, other := range s.names {
		if other == name {
			return true
		}
	}
	return name == ""
}

// typ writes a type, by name if it has one and that is wanted.
func (s *schema) typ(o *op, byName bool) {
	if name := s.names[o]; name != "" && byName {
		s.out.WriteString("@" + name)
		return
	}
	switch o.kind {
	case kindBox:
		s.typ(o.elem, true)
	case kindString, kindBytes:
		s.out.WriteString(o.word())
		s.limit("<max=", o.max, ">")
	case kindOption:
		s.inside("option", o.elem)
		s.out.WriteString(">")
	case kindSeq:
		s.inside("seq", o.elem)
		s.limit(";max=", o.max, "")
		s.out.WriteString(">")
	case kindArray:
		s.inside("array", o.elem)
		s.out.WriteString("," + strconv.Itoa(o.n) + ">")
	case kindMap:
		s.inside("map", o.key)
		s.out.WriteString(",")
		s.typ(o.elem, true)
		s.limit(";max=", o.max, "")
		s.out.WriteString(">")
	case kindStruct:
		s.structure(o)
	case kindEnum:
		s.enum(o)
	default:
		s.out.WriteString(o.word())
	}
}

func (s *schema) inside(word string, o *op) {
	s.out.WriteString(word + "<")
	s.typ(o, true)
}

func (s *schema) limit(before string, limit uint64, after string) {
	if limit != noMax {
		s.out.WriteString(before + strconv.FormatUint(limit, 10) + after)
	}
}

// structure writes a struct, or a tuple if its fields have no names.
func (s *schema) structure(o *op) {
	begin, end := "struct{", "}"
	if o.tuple {
		begin, end = "tuple<", ">"
	}
	s.out.WriteString(begin)
	s.fields(o)
	s.out.WriteString(end)
}

func (s *schema) fields(o *op) {
	for i, f := range o.fields {
		if i > 0 {
			s.out.WriteString(",")
		}
		if f.name != "" {
			s.out.WriteString(f.name + ":")
		}
		s.typ(f.op, true)
	}
}

func (s *schema) enum(o *op) {
	s.out.WriteString("enum{")
	for i, v := range o.variants {
		if i > 0 {
			s.out.WriteString(",")
		}
		s.out.WriteString(v.name)
		s.payload(v.payload)
		s.out.WriteString("=" + strconv.FormatUint(uint64(v.discriminant), 10))
	}
	s.out.WriteString("}")
}

func (s *schema) payload(o *op) {
	switch {
	case o == nil || o.kind == kindUnit:
	case o.kind != kindBox || !o.elem.inline:
		s.out.WriteString("(")
		s.typ(o, true)
		s.out.WriteString(")")
	case o.elem.tuple:
		s.out.WriteString("(")
		s.fields(o.elem)
		s.out.WriteString(")")
	default:
		s.out.WriteString("{")
		s.fields(o.elem)
		s.out.WriteString("}")
	}
}

var words = map[kind]string{
	kindUnit: "unit", kindBool: "bool", kindU8: "u8", kindI8: "i8", kindU128: "u128",
	kindI128: "i128", kindF32: "f32", kindF64: "f64", kindChar: "char", kindString: "string",
	kindBytes: "bytes",
}

func (o *op) word() string {
	switch o.kind {
	case kindUint:
		return "u" + strconv.Itoa(o.width)
	case kindInt:
		return "i" + strconv.Itoa(o.width)
	case kindRaw:
		return "array<u8," + strconv.Itoa(o.n) + ">"
	}
	return words[o.kind]
}
