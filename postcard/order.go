package postcard

import (
	"bytes"
	"cmp"
)

// compareKeys orders two encodings of the same type by the values they stand for. Both have been
// decoded or encoded before, so that reading them again cannot fail.
func (o *op) compareKeys(a, b []byte) int {
	x := decoder{data: a, budget: len(a), lenient: true}
	y := decoder{data: b, budget: len(b), lenient: true}
	return o.compare(&x, &y)
}

func (o *op) compare(a, b *decoder) int {
	switch o.kind {
	case kindOption:
		x, _ := a.flag(nil)
		y, _ := b.flag(nil)
		if x && y {
			return o.elem.compare(a, b)
		}
		return compareFlags(x, y)
	case kindSeq, kindMap:
		x, _ := a.varint(bits64)
		y, _ := b.varint(bits64)
		return cmp.Or(o.compareItems(a, b, min(x, y)), cmp.Compare(x, y))
	case kindArray:
		return o.compareItems(a, b, uint64(o.n))
	case kindStruct:
		for _, f := range o.fields {
			if c := f.op.compare(a, b); c != 0 {
				return c
			}
		}
		return 0
	case kindEnum:
		return o.compareVariants(a, b)
	case kindBox:
		return o.elem.compare(a, b)
	case kindString, kindBytes:
		x, _ := a.prefixed(noMax)
		y, _ := b.prefixed(noMax)
		return bytes.Compare(x, y)
	case kindRaw:
		x, _ := a.take(uint64(o.n))
		y, _ := b.take(uint64(o.n))
		return bytes.Compare(x, y)
	}
	return o.compareScalars(a, b)
}

func compareFlags(x, y bool) int {
	switch {
	case x == y:
		return 0
	case y:
		return -1
	}
	return 1
}

func (o *op) compareItems(a, b *decoder, n uint64) int {
	if o.key == nil && o.elem.noBytes {
		return 0
	}
	for range n {
		if o.key != nil {
			if c := o.key.compare(a, b); c != 0 {
				return c
			}
		}
		if c := o.elem.compare(a, b); c != 0 {
			return c
		}
	}
	return 0
}

func (o *op) compareVariants(a, b *decoder) int {
	x, _ := a.varint(32)
	y, _ := b.varint(32)
	if x != y {
		return cmp.Compare(x, y)
	}
	if i := o.variant(x); i >= 0 && o.variants[i].payload != nil {
		return o.variants[i].payload.compare(a, b)
	}
	return 0
}

func (o *op) compareScalars(a, b *decoder) int {
	switch o.kind {
	case kindBool, kindU8:
		x, _ := a.byte()
		y, _ := b.byte()
		return cmp.Compare(x, y)
	case kindI8:
		x, _ := a.byte()
		y, _ := b.byte()
		return cmp.Compare(int8(x), int8(y))
	case kindUint:
		x, _ := a.varint(o.width)
		y, _ := b.varint(o.width)
		return cmp.Compare(x, y)
	case kindInt:
		x, _ := a.varint(o.width)
		y, _ := b.varint(o.width)
		return cmp.Compare(unzigzag(x), unzigzag(y))
	case kindU128, kindI128:
		return o.compare128(a, b)
	case kindChar:
		x, _ := a.char()
		y, _ := b.char()
		return cmp.Compare(x, y)
	case kindF32, kindF64:
		return o.compareFloats(a, b)
	}
	return 0
}

func (o *op) compare128(a, b *decoder) int {
	x, _ := a.varint128()
	y, _ := b.varint128()
	if o.kind == kindU128 {
		return cmp.Or(cmp.Compare(x.Hi, y.Hi), cmp.Compare(x.Lo, y.Lo))
	}
	i, j := x.unzigzag(), y.unzigzag()
	return cmp.Or(cmp.Compare(i.Hi, j.Hi), cmp.Compare(i.Lo, j.Lo))
}

// compareFloats is the total order of IEEE 754: the bits, as an integer with a sign. Rust has no
// order for floats and so no maps with such keys; this only keeps the encoding unique.
func (o *op) compareFloats(a, b *decoder) int {
	size := sizes[o.kind]
	x, _ := a.take(uint64(size))
	y, _ := b.take(uint64(size))
	return cmp.Compare(totalOrder(x), totalOrder(y))
}

func totalOrder(littleEndian []byte) int64 {
	var bits uint64
	for i, b := range littleEndian {
		bits |= uint64(b) << (bits64 - 8*len(littleEndian) + 8*i)
	}
	v := int64(bits)
	return v ^ int64(uint64(v>>63)>>1)
}
