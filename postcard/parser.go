package postcard

import (
	"strconv"
	"strings"
)

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
		return p.limited(dynamic[string](kindString))
	case "bytes":
		return p.limited(dynamic[[]byte](kindBytes))
	case "struct":
		o := dynamic[[]any](kindStruct)
		return o, p.named(o)
	case "enum":
		o := dynamic[Variant](kindEnum)
		return o, p.list("{", "}", func() error { return p.variant(o) })
	}
	return p.generic(word)
}

// limited reads the limit of a string or byte string, if there is one.
func (p *parser) limited(o *op) (*op, error) {
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
