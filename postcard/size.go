package postcard

import (
	"math"
	"reflect"
)

// MaxSize tells how many bytes a value of a Go type takes at most, with every list, string and
// map as long as its limit allows. It fails with ErrLimit for a type that contains itself, whose
// values have no end, and for one beyond 2^53 bytes. A protocol compares it with its frame size.
func MaxSize(t reflect.Type) (int, error) {
	if t == nil {
		return 0, badValue("size", "nil type")
	}
	p, err := planOf(t)
	if err != nil {
		return 0, err
	}
	most := p.root.most(map[*op]float64{})
	if most > 1<<53 {
		return 0, &Error{Op: "size", Path: p.root.title(), Offset: -1, Err: ErrLimit, Detail: "no bound"}
	}
	return int(most), nil
}

// most adds up in floating point, which is exact as far as MaxSize answers and cannot overflow.
func (o *op) most(known map[*op]float64) float64 {
	if size, ok := known[o]; ok {
		return size
	}
	known[o] = math.Inf(1) // met again before it is known: recursive
	size := o.mostOf(known)
	known[o] = size
	return size
}

func (o *op) mostOf(known map[*op]float64) float64 {
	switch o.kind {
	case kindUint, kindInt:
		return float64((o.width + 6) / 7)
	case kindU128, kindI128:
		return 19
	case kindChar:
		return 5
	case kindString, kindBytes:
		return varintSize(o.max) + float64(o.max)
	case kindRaw:
		return float64(o.n)
	case kindOption:
		return 1 + o.elem.most(known)
	case kindSeq:
		return varintSize(o.max) + times64(o.max, o.elem.most(known))
	case kindMap:
		return varintSize(o.max) + times64(o.max, o.key.most(known)+o.elem.most(known))
	case kindArray:
		return times64(uint64(o.n), o.elem.most(known))
	case kindStruct:
		sum := 0.0
		for _, f := range o.fields {
			sum += f.op.most(known)
		}
		return sum
	case kindEnum:
		most := 0.0
		for _, v := range o.variants {
			most = max(most, varintSize(uint64(v.discriminant))+v.payload.most(known))
		}
		return most
	}
	return float64(sizes[o.kind])
}

// times64 knows that no items take no bytes, even items without a bound.
func times64(n uint64, size float64) float64 {
	if n == 0 {
		return 0
	}
	return float64(n) * size
}

func varintSize(v uint64) float64 { return float64(len(appendVarint(nil, v))) }
