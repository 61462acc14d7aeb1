package postcard

import (
	"reflect"
	"strings"
)

// ParseType reads a type given as text:
//
//	type    = bool | u8 u16 u32 u64 u128 usize | i8 i16 i32 i64 i128 isize | f32 f64
//	        | char | string | bytes | unit | unit_struct
//	        | option<T> | seq<T> | map<K,V> | array<T,N> | tuple<T,...> | newtype<T>
//	        | struct{name:T,...} | enum{variant,...} | @Name
//	variant = Name | Name(T) | Name(T,U,...) | Name{field:T,...}    optionally followed by =INDEX
//
// without spaces. A variant without =INDEX has the one after the previous variant's, from 0.
// Limits may be given as string<max=N>, bytes<max=N>, seq<T;max=N> and map<K,V;max=N>; without
// them a length is bounded by the input and Options.MaxAlloc. @Name stands for names[Name], which
// may refer to itself. What Schema returns may also be given, with its definitions behind " where ".
func ParseType(text string, names map[string]string) (*Type, error) {
	text, where, _ := strings.Cut(text, " where ")
	defs := &definitions{text: map[string]string{}, ops: map[string]*op{}}
	for name, def := range names {
		defs.text[name] = def
	}
	for def := range strings.FieldsSeq(where) {
		name, def, _ := strings.Cut(def, "=")
		defs.text[name] = def
	}
	root, err := defs.parse(text)
	if err != nil {
		return nil, done(err, "parse", &op{name: "type"})
	}
	t := &Type{}
	t.plan.root = box(root)
	t.plan.root.measure(map[*op]bool{})
	return t, nil
}

// definitions are the named types: as text, and as ops as far as they have been needed.
type definitions struct {
	text  map[string]string
	ops   map[string]*op
	depth int
}

func (d *definitions) parse(text string) (*op, error) {
	p := &parser{text: text, defs: d}
	o, err := p.typ()
	if err == nil && p.pos != len(text) {
		err = p.fail("something follows the type")
	}
	return o, err
}

// lookup gives the op of a name. A name met again inside its own definition gets the op that
// will be filled in once the definition is read.
func (d *definitions) lookup(p *parser, name string) (*op, error) {
	if o, ok := d.ops[name]; ok {
		return o, nil
	}
	text, ok := d.text[name]
	if !ok {
		return nil, p.fail("no type of this name: " + name)
	}
	pending := &op{}
	d.ops[name] = pending
	o, err := d.parse(text)
	switch {
	case err != nil:
		return nil, within(err, "@"+name+" ")
	case o == pending:
		return nil, p.fail("nothing but a name for itself: " + name)
	case o.kind == kindPending:
		// Another name for a type around this one.
		d.ops[name] = o
		return o, nil
	}
	*pending = *o
	if pending.name == "" {
		pending.name = name
	}
	return pending, nil
}

// box wraps an op whose value is kept in an any.
func box(o *op) *op { return &op{kind: kindBox, typ: anyOp.typ, elem: o, dynamic: true} }

func dynamic[T any](k kind) *op {
	return &op{kind: k, typ: reflect.TypeFor[T](), dynamic: true, max: noMax}
}

func integer[T any](k kind, width int) *op {
	o := dynamic[T](k)
	o.width = width
	return o
}

func wordType(word string) *op {
	switch word {
	case "bool":
		return dynamic[bool](kindBool)
	case "u8":
		return dynamic[uint8](kindU8)
	case "u16":
		return integer[uint16](kindUint, 16)
	case "u32":
		return integer[uint32](kindUint, 32)
	case "u64", "usize":
		return integer[uint64](kindUint, 64)
	case "u128":
		return dynamic[Uint128](kindU128)
	case "i8":
		return dynamic[int8](kindI8)
	case "i16":
		return integer[int16](kindInt, 16)
	case "i32":
		return integer[int32](kindInt, 32)
	case "i64", "isize":
		return integer[int64](kindInt, 64)
	case "i128":
		return dynamic[Int128](kindI128)
	case "f32":
		return dynamic[float32](kindF32)
	case "f64":
		return dynamic[float64](kindF64)
	case "char":
		return dynamic[Char](kindChar)
	case "unit", "unit_struct":
		return dynamic[struct{}](kindUnit)
	}
	return nil
}
