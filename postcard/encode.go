package postcard

import (
	"encoding/binary"
	"math"
	"reflect"
	"unicode/utf8"
)

// encoder appends one value to buf. It lives on the stack of the call that encodes.
type encoder struct {
	buf   []byte
	depth int // levels still allowed
}

func refuse(err error, detail string) error {
	return &Error{Offset: -1, Err: err, Detail: detail}
}

// value encodes src. Unless boxed, src is addressable, which arrays of bytes need to be read at
// one go.
func (e *encoder) value(o *op, src reflect.Value) error {
	switch o.kind {
	case kindUnit:
		return nil
	case kindString:
		return e.str(o, src)
	case kindBytes:
		return e.bytes(o, src)
	case kindRaw:
		e.buf = append(e.buf, src.Bytes()...)
		return nil
	case kindOption:
		return e.option(o, src)
	case kindSeq:
		return e.seq(o, src)
	case kindArray:
		return e.array(o, src)
	case kindStruct:
		return e.structure(o, src)
	case kindEnum:
		return e.enum(o, src)
	case kindMap:
		return e.dict(o, src)
	case kindBox:
		return e.box(o, src)
	case kindChar:
		return e.char(src)
	}
	e.scalar(o, src)
	return nil
}

func (e *encoder) scalar(o *op, src reflect.Value) {
	switch o.kind {
	case kindBool:
		e.flag(src.Bool())
	case kindU8:
		e.buf = append(e.buf, byte(src.Uint()))
	case kindI8:
		e.buf = append(e.buf, byte(src.Int()))
	case kindUint:
		e.buf = appendVarint(e.buf, src.Uint())
	case kindInt:
		e.buf = appendVarint(e.buf, zigzag(src.Int()))
	case kindU128:
		v := Uint128{Hi: src.Field(0).Uint(), Lo: src.Field(1).Uint()}
		e.buf = appendVarint128(e.buf, v)
	case kindI128:
		v := Int128{Hi: src.Field(0).Int(), Lo: src.Field(1).Uint()}
		e.buf = appendVarint128(e.buf, v.zigzag())
	case kindF32:
		e.buf = binary.LittleEndian.AppendUint32(e.buf, math.Float32bits(float32Of(src)))
	case kindF64:
		e.buf = binary.LittleEndian.AppendUint64(e.buf, math.Float64bits(src.Float()))
	}
}

// float32Of keeps every bit, which reflect's Float would not: it quiets a signalling NaN.
func float32Of(src reflect.Value) float32 {
	if src.CanAddr() {
		if p, ok := src.Addr().Interface().(*float32); ok {
			return *p
		}
	}
	return src.Convert(reflect.TypeFor[float32]()).Interface().(float32)
}

func (e *encoder) enter() error {
	if e.depth == 0 {
		return refuse(ErrDepth, "")
	}
	e.depth--
	return nil
}

func (e *encoder) flag(set bool) {
	if set {
		e.buf = append(e.buf, 1)
		return
	}
	e.buf = append(e.buf, 0)
}

func (e *encoder) count(o *op, n int) error {
	if uint64(n) > o.max {
		return overLimit(-1, o.max)
	}
	e.buf = appendVarint(e.buf, uint64(n))
	return nil
}

func (e *encoder) str(o *op, src reflect.Value) error {
	s := src.String()
	if !utf8.ValidString(s) {
		return refuse(ErrUTF8, "")
	}
	if err := e.count(o, len(s)); err != nil {
		return err
	}
	e.buf = append(e.buf, s...)
	return nil
}

func (e *encoder) bytes(o *op, src reflect.Value) error {
	b := src.Bytes()
	if err := e.count(o, len(b)); err != nil {
		return err
	}
	e.buf = append(e.buf, b...)
	return nil
}

func (e *encoder) char(src reflect.Value) error {
	c := rune(src.Int())
	if !utf8.ValidRune(c) {
		return refuse(ErrChar, "")
	}
	e.buf = append(e.buf, byte(utf8.RuneLen(c)))
	e.buf = utf8.AppendRune(e.buf, c)
	return nil
}

func (e *encoder) option(o *op, src reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	e.flag(!src.IsNil())
	if !src.IsNil() {
		if err := e.value(o.elem, src.Elem()); err != nil {
			return err
		}
	}
	e.depth++
	return nil
}

func (e *encoder) seq(o *op, src reflect.Value) error {
	if err := e.count(o, src.Len()); err != nil {
		return err
	}
	return e.items(o, src, src.Len())
}

func (e *encoder) array(o *op, src reflect.Value) error {
	if o.dynamic && src.Len() != o.n {
		return refuse(ErrType, "wrong number of items")
	}
	return e.items(o, src, o.n)
}

func (e *encoder) items(o *op, src reflect.Value, n int) error {
	if err := e.enter(); err != nil {
		return err
	}
	if o.elem.noBytes {
		n = 0
	}
	for i := range n {
		if err := e.value(o.elem, src.Index(i)); err != nil {
			return withinItem(err, i)
		}
	}
	e.depth++
	return nil
}

func (e *encoder) structure(o *op, src reflect.Value) error {
	if o.dynamic && src.Len() != len(o.fields) {
		return refuse(ErrType, "wrong number of fields")
	}
	if !o.inline {
		if err := e.enter(); err != nil {
			return err
		}
	}
	for i := range o.fields {
		f := &o.fields[i]
		if err := e.value(f.op, o.slot(src, i)); err != nil {
			return within(err, f.segment)
		}
	}
	if !o.inline {
		e.depth++
	}
	return nil
}

func (e *encoder) enum(o *op, src reflect.Value) error {
	if err := e.enter(); err != nil {
		return err
	}
	i, payload, err := o.chosen(src)
	if err != nil {
		return err
	}
	v := &o.variants[i]
	e.buf = appendVarint(e.buf, uint64(v.discriminant))
	if v.payload != nil {
		if err := e.value(v.payload, payload); err != nil {
			return within(err, v.segment)
		}
	}
	e.depth++
	return nil
}

// chosen tells which variant the value is: the one pointer that is set, or the one named.
func (o *op) chosen(src reflect.Value) (i int, payload reflect.Value, err error) {
	if o.dynamic {
		return o.named(src)
	}
	i = -1
	for at := range o.variants {
		if src.Field(at).IsNil() {
			continue
		}
		if i >= 0 {
			return 0, payload, refuse(ErrDiscriminant, "more than one variant is set")
		}
		i = at
	}
	if i < 0 {
		return 0, payload, refuse(ErrDiscriminant, "no variant is set")
	}
	return i, src.Field(i).Elem(), nil
}

func (o *op) named(src reflect.Value) (i int, payload reflect.Value, err error) {
	name := src.Field(0).String()
	for i := range o.variants {
		if o.variants[i].name == name {
			return i, src.Field(1), nil
		}
	}
	return 0, payload, refuse(ErrDiscriminant, "")
}

func (e *encoder) box(o *op, src reflect.Value) error {
	v := src.Elem()
	if !v.IsValid() || v.Type() != o.elem.typ {
		return refuse(ErrType, "want "+o.elem.typ.String())
	}
	return e.value(o.elem, v)
}
