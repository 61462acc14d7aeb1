package postcard

import "reflect"

// A plan is a tree of ops, made once per type and only read afterwards. plan.go makes it from Go
// types and typelang.go from text; encode.go, decode.go and order.go interpret it and do not know
// which of the two it was, save for where a value is kept: see box.
type op struct {
	kind  kind
	width int // bits of kindUint and kindInt

	// max bounds the items of a seq or map and the bytes of a string; noMax if the type has
	// no bound of its own, which only text can say.
	max uint64
	n   int // items of an array

	elem     *op // of an option, seq, array, map (its values) or box
	key      *op // of a map
	fields   []field
	variants []variant
	tuple    bool // a struct whose fields have no names
	inline   bool // a variant's fields: part of the enum's level, not one more

	typ     reflect.Type // what the value is kept in
	name    string       // Go type, or name in the table given to ParseType; may be empty
	dynamic bool         // kept as []any, Variant or []Pair, not in a Go type of its own

	least   int  // no encoding of the value is shorter
	noBytes bool // Go only: no bytes on the wire and none in memory
}

type field struct {
	name    string
	segment string // name as a step of an error's path
	op      *op
}

type variant struct {
	name         string
	segment      string
	discriminant uint32
	payload      *op // nil: none
}

type kind uint8

const (
	kindPending kind = iota // a name or struct whose own definition is still being read
	kindUnit
	kindBool
	kindU8
	kindI8
	kindUint
	kindInt
	kindU128
	kindI128
	kindF32
	kindF64
	kindChar
	kindString
	kindBytes
	kindRaw // array of u8: its bytes and nothing else
	kindOption
	kindSeq
	kindArray
	kindStruct // tuples too: fields without names
	kindEnum
	kindMap
	// kindBox keeps its element in an any. All parts of a type given as text are boxed; its
	// recursion therefore needs no recursive Go type.
	kindBox
)

const noMax = 1<<64 - 1

// manyBytes is where least stops counting; as a lower bound it may, and no sum overflows.
const manyBytes = 1 << 30

var sizes = map[kind]int{
	kindBool: 1, kindU8: 1, kindI8: 1, kindUint: 1, kindInt: 1, kindU128: 1, kindI128: 1,
	kindF32: 4, kindF64: 8, kindChar: 2, kindString: 1, kindBytes: 1, kindOption: 1, kindSeq: 1,
	kindEnum: 1, kindMap: 1,
}

// measure fills in least and noBytes. In a recursive type an op may be asked before it is done
// and then answers with too little, which is what a lower bound may do.
func (o *op) measure(seen map[*op]bool) {
	if seen[o] {
		return
	}
	seen[o] = true
	o.least = sizes[o.kind]
	for _, part := range o.parts() {
		part.measure(seen)
	}
	switch o.kind {
	case kindRaw:
		o.least = min(o.n, manyBytes)
	case kindArray:
		o.least = times(o.n, o.elem.least)
	case kindBox:
		o.least = o.elem.least
	case kindStruct:
		for _, f := range o.fields {
			o.least = min(o.least+f.op.least, manyBytes)
		}
	case kindEnum:
		o.least += o.leastPayload()
	}
	o.noBytes = !o.dynamic && o.empty()
}

func times(n, size int) int {
	if size != 0 && n > manyBytes/size {
		return manyBytes
	}
	return n * size
}

func (o *op) leastPayload() int {
	least := 0
	for i, v := range o.variants {
		if v.payload == nil {
			return 0
		}
		if i == 0 || v.payload.least < least {
			least = v.payload.least
		}
	}
	return min(least, manyBytes)
}

func (o *op) empty() bool {
	switch o.kind {
	case kindUnit:
		return true
	case kindRaw:
		return o.n == 0
	case kindArray:
		return o.n == 0 || o.elem.noBytes
	case kindStruct:
		for _, f := range o.fields {
			if !f.op.noBytes {
				return false
			}
		}
		return true
	}
	return false
}

// parts lists what an op consists of.
func (o *op) parts() []*op {
	var parts []*op
	if o.key != nil {
		parts = append(parts, o.key)
	}
	if o.elem != nil {
		parts = append(parts, o.elem)
	}
	for _, f := range o.fields {
		parts = append(parts, f.op)
	}
	for _, v := range o.variants {
		if v.payload != nil {
			parts = append(parts, v.payload)
		}
	}
	return parts
}

// variant finds a variant by discriminant. Most enums number their variants from 0 without gaps.
func (o *op) variant(discriminant uint64) int {
	if discriminant < uint64(len(o.variants)) && uint64(o.variants[discriminant].discriminant) == discriminant {
		return int(discriminant)
	}
	for i := range o.variants {
		if uint64(o.variants[i].discriminant) == discriminant {
			return i
		}
	}
	return -1
}

// title starts the path of an error.
func (o *op) title() string {
	switch {
	case o.kind == kindBox:
		return o.elem.title()
	case !o.dynamic && o.typ != nil:
		return o.typ.String()
	case o.name != "":
		return o.name
	}
	return "value"
}
