package postcard

import (
	"reflect"
	"sync"
)

// plans keeps the plan of each Go type, or why it has none. There are as many entries as types
// in the program.
var plans sync.Map // reflect.Type → planned

type planned struct {
	plan *plan
	err  error
}

func planOf(t reflect.Type) (*plan, error) {
	if known, ok := plans.Load(t); ok {
		p := known.(*planned)
		return p.plan, p.err
	}
	p := &planned{}
	p.plan, p.err = makePlan(t)
	known, _ := plans.LoadOrStore(t, p)
	p = known.(*planned)
	return p.plan, p.err
}

func makePlan(t reflect.Type) (*plan, error) {
	b := builder{structs: map[reflect.Type]*op{}}
	root, err := b.build(t, &tag{})
	if err != nil {
		return nil, done(err, "plan", &op{typ: t})
	}
	root.measure(map[*op]bool{})
	return &plan{root: root}, nil
}

// builder makes the ops of one Go type. A struct gets one op however often it occurs, which is
// what lets a type be recursive.
type builder struct {
	structs map[reflect.Type]*op
	depth   int
}

// maxTypeDepth stops at type P *P, which never comes to an end.
const maxTypeDepth = 200

func unsupported(detail string) error { return refuse(ErrUnsupported, detail) }

var scalars = map[reflect.Kind]op{
	reflect.Bool:    {kind: kindBool},
	reflect.Uint8:   {kind: kindU8},
	reflect.Uint16:  {kind: kindUint, width: 16},
	reflect.Uint32:  {kind: kindUint, width: 32},
	reflect.Uint64:  {kind: kindUint, width: 64},
	reflect.Int8:    {kind: kindI8},
	reflect.Int16:   {kind: kindInt, width: 16},
	reflect.Int32:   {kind: kindInt, width: 32},
	reflect.Int64:   {kind: kindInt, width: 64},
	reflect.Float32: {kind: kindF32},
	reflect.Float64: {kind: kindF64},
}

var special = map[reflect.Type]kind{
	reflect.TypeFor[Uint128](): kindU128,
	reflect.TypeFor[Int128]():  kindI128,
	reflect.TypeFor[Char]():    kindChar,
}

func (b *builder) build(t reflect.Type, limits *tag) (*op, error) {
	b.depth++
	defer func() { b.depth-- }()
	if b.depth > maxTypeDepth {
		return nil, unsupported("the type does not end")
	}
	if k, ok := special[t]; ok {
		return &op{kind: k, typ: t}, nil
	}
	if o, ok := scalars[t.Kind()]; ok {
		o.typ = t
		return &o, nil
	}
	switch t.Kind() {
	case reflect.String, reflect.Slice, reflect.Map:
		return b.bounded(t, limits)
	case reflect.Array:
		return b.array(t, limits)
	case reflect.Pointer:
		elem, err := b.build(t.Elem(), limits)
		return &op{kind: kindOption, typ: t, elem: elem}, err
	case reflect.Struct:
		return b.structure(t)
	case reflect.Int, reflect.Uint, reflect.Uintptr:
		return nil, unsupported(t.String() + " has the width of the platform")
	}
	return nil, unsupported(t.String())
}

// bounded builds what has a length on the wire.
func (b *builder) bounded(t reflect.Type, limits *tag) (*op, error) {
	limit, err := limits.next()
	if err != nil {
		return nil, err
	}
	o := &op{typ: t, max: limit}
	switch {
	case t.Kind() == reflect.String:
		o.kind = kindString
		return o, nil
	case t.Kind() == reflect.Map:
		o.kind = kindMap
		return o, b.dict(o, limits)
	case t.Elem().Kind() == reflect.Uint8:
		o.kind = kindBytes
		return o, nil
	}
	o.kind = kindSeq
	o.elem, err = b.build(t.Elem(), limits)
	return o, within(err, "[]")
}

func (b *builder) array(t reflect.Type, limits *tag) (*op, error) {
	if t.Elem().Kind() == reflect.Uint8 {
		return &op{kind: kindRaw, typ: t, n: t.Len()}, nil
	}
	elem, err := b.build(t.Elem(), limits)
	return &op{kind: kindArray, typ: t, n: t.Len(), elem: elem}, within(err, "[]")
}

func (b *builder) dict(o *op, limits *tag) error {
	keys := tag{limits: limits.key}
	limits.key = nil
	var err error
	if o.key, err = b.build(o.typ.Key(), &keys); err != nil {
		return within(err, "[key]")
	}
	if err := keys.used(); err != nil {
		return within(err, "[key]")
	}
	if !o.key.ordered() {
		return within(unsupported("keys must be integers, bools, chars, strings, or arrays or structs of them"), "[key]")
	}
	o.elem, err = b.build(o.typ.Elem(), limits)
	return within(err, "[]")
}

// ordered tells whether equal keys in Go are equal on the wire and the other way round, which
// neither pointers nor floats are.
func (o *op) ordered() bool {
	switch o.kind {
	case kindOption, kindEnum, kindF32, kindF64, kindUnit:
		return false
	}
	for _, part := range o.parts() {
		if !part.ordered() {
			return false
		}
	}
	return o.kind != kindStruct || len(o.fields) > 0
}

func (b *builder) structure(t reflect.Type) (*op, error) {
	if o, ok := b.structs[t]; ok {
		return o, nil
	}
	o := &op{typ: t, name: t.Name()}
	b.structs[t] = o
	if t.NumField() == 0 {
		o.kind = kindUnit
		return o, nil
	}
	variants := 0
	for i := range t.NumField() {
		isVariant, err := b.field(o, t.Field(i))
		if err != nil {
			return nil, within(err, "."+t.Field(i).Name)
		}
		if isVariant {
			variants++
		}
	}
	if variants > 0 && variants < t.NumField() {
		return nil, refuse(ErrTag, "some fields have a discriminant and some have none")
	}
	o.kind = kindStruct
	if variants > 0 {
		o.kind = kindEnum
	}
	return o, nil
}

func (b *builder) field(o *op, f reflect.StructField) (isVariant bool, err error) {
	if !f.IsExported() {
		return false, unsupported("field is not exported")
	}
	limits, err := parseTag(f)
	if err != nil {
		return false, err
	}
	if limits.isVariant {
		return true, b.variant(o, f, &limits)
	}
	part, err := b.build(f.Type, &limits)
	if err != nil {
		return false, err
	}
	o.fields = append(o.fields, field{name: f.Name, segment: "." + f.Name, op: part})
	return false, limits.used()
}

func (b *builder) variant(o *op, f reflect.StructField, limits *tag) error {
	if f.Type.Kind() != reflect.Pointer {
		return refuse(ErrTag, "a variant must be a pointer")
	}
	for _, v := range o.variants {
		if v.discriminant == limits.discriminant {
			return refuse(ErrTag, "two variants have this discriminant")
		}
	}
	payload, err := b.build(f.Type.Elem(), limits)
	if err != nil {
		return err
	}
	o.variants = append(o.variants, variant{
		name: f.Name, segment: "." + f.Name, discriminant: limits.discriminant, payload: payload,
	})
	return limits.used()
}
