package postcard

import (
	"reflect"
	"strconv"
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

// parser reads one type from text.
type parser struct {
	text string
	pos  int
	defs *definitions
}

func (p *parser) fail(detail string) error {
	return &Error{Offset: p.pos, Err: ErrSyntax, Detail: detail}
}

// word takes everything up to the next mark.
func (p *parser) word() string {
	rest := p.text[p.pos:]
	if end := strings.IndexAny(rest, "<>(){}:;,=@ "); end >= 0 {
		rest = rest[:end]
	}
	p.pos += len(rest)
	return rest
}

func (p *parser) skip(mark string) bool {
	if !strings.HasPrefix(p.text[p.pos:], mark) {
		return false
	}
	p.pos += len(mark)
	return true
}

func (p *parser) expect(mark string) error {
	if !p.skip(mark) {
		return p.fail("want " + mark)
	}
	return nil
}

func (p *parser) number(bits int) (uint64, error) {
	n, err := strconv.ParseUint(p.word(), 10, bits)
	if err != nil {
		return 0, p.fail("want a number")
	}
	return n, nil
}

func (p *parser) typ() (*op, error) {
	p.defs.depth++
	defer func() { p.defs.depth-- }()
	if p.defs.depth > maxTypeDepth {
		return nil, p.fail("nested too deeply")
	}
	if p.skip("@") {
		return p.defs.lookup(p, p.word())
	}
	word := p.word()
	if o := wordType(word); o != nil {
		return o, nil
	}
	switch word {
	case "string":
		return p.text1(dynamic[string](kindString))
	case "bytes":
		return p.text1(dynamic[[]byte](kindBytes))
	case "struct":
		o := dynamic[[]any](kindStruct)
		return o, p.named(o)
	case "enum":
		o := dynamic[Variant](kindEnum)
		return o, p.list("{", "}", func() error { return p.variant(o) })
	}
	return p.generic(word)
}

// text1 reads the limit of a string or byte string, if there is one.
func (p *parser) text1(o *op) (*op, error) {
	if !p.skip("<max=") {
		return o, nil
	}
	var err error
	if o.max, err = p.number(bits64); err != nil {
		return nil, err
	}
	return o, p.expect(">")
}

// generic reads a type with others between angle brackets.
func (p *parser) generic(word string) (*op, error) {
	if word == "tuple" {
		o := dynamic[[]any](kindStruct)
		o.tuple = true
		return o, p.list("<", ">", func() error { return p.position(o) })
	}
	if err := p.expect("<"); err != nil {
		return nil, err
	}
	o, err := p.inside(word)
	if err != nil {
		return nil, err
	}
	return o, p.expect(">")
}

func (p *parser) inside(word string) (o *op, err error) {
	switch word {
	case "newtype":
		return p.typ()
	case "option":
		o = dynamic[*any](kindOption)
		o.elem, err = p.part()
		return o, err
	case "seq":
		o = dynamic[[]any](kindSeq)
		if o.elem, err = p.part(); err != nil {
			return nil, err
		}
		return o, p.limit(o)
	case "map":
		o = dynamic[[]Pair](kindMap)
		if o.key, err = p.part(); err != nil {
			return nil, err
		}
		if err := p.expect(","); err != nil {
			return nil, err
		}
		if o.elem, err = p.part(); err != nil {
			return nil, err
		}
		return o, p.limit(o)
	case "array":
		o = dynamic[[]any](kindArray)
		if o.elem, err = p.part(); err != nil {
			return nil, err
		}
		return o, p.length(o)
	}
	return nil, p.fail("no such type: " + word)
}

func (p *parser) part() (*op, error) {
	o, err := p.typ()
	return box(o), err
}

func (p *parser) limit(o *op) (err error) {
	if p.skip(";max=") {
		o.max, err = p.number(bits64)
	}
	return err
}

func (p *parser) length(o *op) error {
	if err := p.expect(","); err != nil {
		return err
	}
	n, err := p.number(31)
	o.n = int(n)
	return err
}

// list reads items with commas between.
func (p *parser) list(open, end string, item func() error) error {
	if err := p.expect(open); err != nil {
		return err
	}
	if p.skip(end) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if p.skip(end) {
			return nil
		}
		if err := p.expect(","); err != nil {
			return err
		}
	}
}

func (p *parser) position(o *op) error {
	part, err := p.part()
	segment := "." + strconv.Itoa(len(o.fields))
	o.fields = append(o.fields, field{segment: segment, op: part})
	return err
}

func (p *parser) named(o *op) error {
	return p.list("{", "}", func() error {
		name := p.word()
		for _, f := range o.fields {
			if f.name == name {
				return p.fail("a second field of this name: " + name)
			}
		}
		if name == "" {
			return p.fail("want a field's name")
		}
		if err := p.expect(":"); err != nil {
			return err
		}
		part, err := p.part()
		o.fields = append(o.fields, field{name: name, segment: "." + name, op: part})
		return err
	})
}

func (p *parser) variant(o *op) error {
	v := variant{name: p.word()}
	v.segment = "." + v.name
	if len(o.variants) > 0 {
		v.discriminant = o.variants[len(o.variants)-1].discriminant + 1
	}
	var err error
	if v.payload, err = p.payload(); err != nil {
		return err
	}
	if p.skip("=") {
		n, err := p.number(32)
		if err != nil {
			return err
		}
		v.discriminant = uint32(n)
	}
	for _, other := range o.variants {
		if other.name == v.name || other.discriminant == v.discriminant {
			return p.fail("a second variant of this name or index: " + v.name)
		}
	}
	if v.name == "" {
		return p.fail("want a variant's name")
	}
	o.variants = append(o.variants, v)
	return nil
}

// payload reads what a variant carries. Several fields are a struct that adds no level of its own.
func (p *parser) payload() (*op, error) {
	o := dynamic[[]any](kindStruct)
	o.inline = true
	switch {
	case strings.HasPrefix(p.text[p.pos:], "{"):
		return box(o), p.named(o)
	case strings.HasPrefix(p.text[p.pos:], "("):
		o.tuple = true
		err := p.list("(", ")", func() error { return p.position(o) })
		if len(o.fields) == 1 {
			return o.fields[0].op, err
		}
		return box(o), err
	}
	return nil, nil
}
