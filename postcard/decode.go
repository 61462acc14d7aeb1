package postcard

import "reflect"

// decoder reads one value. It lives on the stack of the call that decodes.
type decoder struct {
	data    []byte
	off     int
	depth   int // levels still allowed
	budget  int // bytes that may still be allocated
	lenient bool
}

// value decodes what o describes into dst, which is addressable and holds the zero value or
// whatever the caller had there before.
func (d *decoder) value(o *op, dst reflect.Value) error {
	switch o.kind {
	case kindUnit:
		return nil
	case kindString:
		return d.str(o, dst)
	case kindBytes:
		return d.bytes(o, dst)
	case kindRaw:
		return d.raw(o, dst)
	case kindOption:
		return d.option(o, dst)
	case kindSeq:
		return d.seq(o, dst)
	case kindArray:
		return d.array(o, dst)
	case kindStruct:
		return d.structure(o, dst)
	case kindEnum:
		return d.enum(o, dst)
	case kindMap:
		return d.dict(o, dst)
	case kindBox:
		return d.box(o, dst)
	}
	return d.scalar(o, dst)
}

func (d *decoder) scalar(o *op, dst reflect.Value) error {
	switch o.kind {
	case kindBool:
		set, err := d.flag(ErrBool)
		dst.SetBool(set)
		return err
	case kindU8:
		b, err := d.byte()
		dst.SetUint(uint64(b))
		return err
	case kindI8:
		b, err := d.byte()
		dst.SetInt(int64(int8(b)))
		return err
	case kindUint:
		v, err := d.varint(o.width)
		dst.SetUint(v)
		return err
	case kindInt:
		v, err := d.varint(o.width)
		dst.SetInt(unzigzag(v))
		return err
	case kindU128:
		v, err := d.varint128()
		dst.Field(0).SetUint(v.Hi)
		dst.Field(1).SetUint(v.Lo)
		return err
	case kindI128:
		u, err := d.varint128()
		v := u.unzigzag()
		dst.Field(0).SetInt(v.Hi)
		dst.Field(1).SetUint(v.Lo)
		return err
	case kindChar:
		c, err := d.char()
		dst.SetInt(int64(c))
		return err
	}
	return d.float(o, dst)
}

func (d *decoder) str(o *op, dst reflect.Value) error {
	b, err := d.text(o.max)
	if err != nil {
		return err
	}
	dst.SetString(string(b))
	return nil
}

// bytes copies: the value must not change when the caller reuses the input.
func (d *decoder) bytes(o *op, dst reflect.Value) error {
	b, err := d.prefixed(o.max)
	if err != nil {
		return err
	}
	if len(b) == 0 {
		dst.SetZero()
		return nil
	}
	dst.SetBytes(append([]byte(nil), b...))
	return nil
}

func (d *decoder) raw(o *op, dst reflect.Value) error {
	b, err := d.take(uint64(o.n))
	if err != nil {
		return err
	}
	copy(dst.Bytes(), b)
	return nil
}

func (d *decoder) option(o *op, dst reflect.Value) error {
	some, err := d.flag(ErrOption)
	if err != nil {
		return err
	}
	if !some {
		dst.SetZero()
		return d.level()
	}
	return d.pointer(o.elem, dst)
}

// pointer decodes into a new variable and points dst at it.
func (d *decoder) pointer(elem *op, dst reflect.Value) error {
	if err := d.enter(); err != nil {
		return err
	}
	if err := d.charge(1, elem); err != nil {
		return err
	}
	p := reflect.New(elem.typ)
	if err := d.value(elem, p.Elem()); err != nil {
		return err
	}
	dst.Set(p)
	d.depth++
	return nil
}

func (d *decoder) seq(o *op, dst reflect.Value) error {
	n, err := d.count(o.max, o.elem.least)
	if err != nil {
		return err
	}
	if n == 0 && !o.dynamic {
		dst.SetZero()
		return d.level()
	}
	return d.items(o, dst, n)
}

func (d *decoder) array(o *op, dst reflect.Value) error {
	if o.least > len(d.data)-d.off {
		return fault(d.off, ErrTruncated)
	}
	if o.dynamic {
		return d.items(o, dst, o.n)
	}
	if err := d.enter(); err != nil {
		return err
	}
	// An array without bytes may have any length in Go, and so take any time.
	for i := 0; i < o.n && !o.elem.noBytes; i++ {
		if err := d.value(o.elem, dst.Index(i)); err != nil {
			return withinItem(err, i)
		}
	}
	d.depth++
	return nil
}

// items fills a new slice of n.
func (d *decoder) items(o *op, dst reflect.Value, n int) error {
	if err := d.enter(); err != nil {
		return err
	}
	if err := d.makeSlice(o.elem, dst, n); err != nil {
		return err
	}
	if o.elem.noBytes {
		n = 0
	}
	for i := range n {
		if err := d.value(o.elem, dst.Index(i)); err != nil {
			return withinItem(err, i)
		}
	}
	d.depth++
	return nil
}

func (d *decoder) makeSlice(elem *op, dst reflect.Value, n int) error {
	if err := d.charge(n, elem); err != nil {
		return err
	}
	if n == 0 {
		dst.Set(reflect.MakeSlice(dst.Type(), 0, 0))
		return nil
	}
	// A new array always: whoever kept the old slice keeps its content.
	dst.SetZero()
	dst.Grow(n)
	dst.SetLen(n)
	return nil
}

func (d *decoder) structure(o *op, dst reflect.Value) error {
	if !o.inline {
		if err := d.enter(); err != nil {
			return err
		}
	}
	if o.dynamic {
		if err := d.makeSlice(anyOp, dst, len(o.fields)); err != nil {
			return err
		}
	}
	for i := range o.fields {
		f := &o.fields[i]
		if err := d.value(f.op, o.slot(dst, i)); err != nil {
			return within(err, f.segment)
		}
	}
	if !o.inline {
		d.depth++
	}
	return nil
}

// slot is where a struct keeps a field.
func (o *op) slot(v reflect.Value, i int) reflect.Value {
	if o.dynamic {
		return v.Index(i)
	}
	return v.Field(i)
}

func (d *decoder) enum(o *op, dst reflect.Value) error {
	start := d.off
	discriminant, err := d.varint(32)
	if err != nil {
		return err
	}
	i := o.variant(discriminant)
	if i < 0 {
		return fault(start, ErrDiscriminant)
	}
	v := &o.variants[i]
	if o.dynamic {
		err = d.named(v, dst)
	} else {
		dst.SetZero()
		err = d.pointer(v.payload, dst.Field(i))
	}
	return within(err, v.segment)
}

// named decodes into a Variant.
func (d *decoder) named(v *variant, dst reflect.Value) error {
	dst.Field(0).SetString(v.name)
	if v.payload == nil {
		return d.level()
	}
	if err := d.enter(); err != nil {
		return err
	}
	if err := d.value(v.payload, dst.Field(1)); err != nil {
		return err
	}
	d.depth++
	return nil
}

func (d *decoder) box(o *op, dst reflect.Value) error {
	if err := d.charge(1, o.elem); err != nil {
		return err
	}
	v := reflect.New(o.elem.typ).Elem()
	if err := d.value(o.elem, v); err != nil {
		return err
	}
	dst.Set(v)
	return nil
}
