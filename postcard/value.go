package postcard

import "reflect"

// Value is a value whose type is given by text (see ParseType) and not by Go. Marshal and
// Unmarshal take it wherever they take a value; Unmarshal needs Type to be set. V holds:
//
//	bool               bool
//	u8 … u64, usize    uint8 … uint64, uint64
//	i8 … i64, isize    int8 … int64, int64
//	u128, i128         Uint128, Int128
//	f32, f64           float32, float64
//	char, string       Char, string
//	bytes              []byte
//	unit, unit_struct  struct{}
//	option             *any, nil for None
//	seq, array         []any
//	tuple, struct      []any, the fields in order
//	enum               Variant
//	map                []Pair, decoded in the order of the keys
type Value struct {
	Type *Type
	V    any
}

// Variant is a value of an enum. Value is nil if the variant has no payload, the payload if it
// has one, and an []any if it has several or named ones.
type Variant struct {
	Name  string
	Value any
}

// Pair is an entry of a map.
type Pair struct{ Key, Value any }

// Type is a type that was given as text. It may be used by many goroutines at once.
type Type struct{ plan plan }

// String gives the type in the form of Schema.
func (t *Type) String() string { return t.plan.root.schema() }

func (v *Value) source() (*plan, reflect.Value, error) {
	if v.Type == nil {
		return nil, reflect.Value{}, badValue("use", "Value without a Type")
	}
	return &v.Type.plan, reflect.ValueOf(&v.V).Elem(), nil
}

var (
	anyOp  = &op{kind: kindBox, typ: reflect.TypeFor[any]()}
	pairOp = &op{kind: kindStruct, typ: reflect.TypeFor[Pair]()}
)
