package postcard

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

// random fills values of any plan, so that one property test serves Go types and text types.
type random struct {
	*rand.Rand
	depth int
}

func newRandom(t testing.TB) *random {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return &random{Rand: rand.New(rand.NewPCG(seed, seed))}
}

// integer prefers the edges, where varints change length and signs.
func (r *random) integer() uint64 {
	v := uint64(1) << r.IntN(65)
	return v + uint64(r.IntN(3)) - 1
}

func (r *random) length(limit uint64) int {
	if r.depth > 12 {
		return 0
	}
	return r.IntN(int(min(limit, 4)) + 1)
}

func (r *random) text(n int) string {
	var s strings.Builder
	for s.Len() < n {
		if c := r.char(); s.Len()+utf8.RuneLen(c) <= n {
			s.WriteRune(c)
		}
	}
	return s.String()
}

func (r *random) char() rune {
	for {
		if c := rune(r.IntN(utf8.MaxRune+1) >> r.IntN(16)); utf8.ValidRune(c) {
			return c
		}
	}
}

func (r *random) fill(o *op, v reflect.Value) {
	r.depth++
	defer func() { r.depth-- }()
	switch o.kind {
	case kindOption:
		if r.depth < 12 && r.IntN(3) > 0 {
			v.Set(reflect.New(o.elem.typ))
			r.fill(o.elem, v.Elem())
		}
	case kindSeq:
		r.items(o.elem, v, r.length(o.max))
	case kindArray:
		n := o.n
		if o.dynamic {
			r.items(o.elem, v, n)
			return
		}
		for i := range n {
			r.fill(o.elem, v.Index(i))
		}
	case kindStruct:
		if o.dynamic {
			v.Set(reflect.MakeSlice(v.Type(), len(o.fields), len(o.fields)))
		}
		for i, f := range o.fields {
			r.fill(f.op, o.slot(v, i))
		}
	case kindEnum:
		r.variant(o, v)
	case kindMap:
		r.dict(o, v)
	case kindBox:
		inner := reflect.New(o.elem.typ).Elem()
		r.fill(o.elem, inner)
		v.Set(inner)
	default:
		r.leaf(o, v)
	}
}

func (r *random) items(elem *op, v reflect.Value, n int) {
	if n == 0 && !elem.dynamic {
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	for i := range n {
		r.fill(elem, v.Index(i))
	}
}

func (r *random) variant(o *op, v reflect.Value) {
	i := r.IntN(len(o.variants))
	if r.depth > 12 {
		i = 0 // by custom the one that ends
	}
	chosen := o.variants[i]
	switch {
	case !o.dynamic:
		v.Field(i).Set(reflect.New(chosen.payload.typ))
		r.fill(chosen.payload, v.Field(i).Elem())
	case chosen.payload == nil:
		v.Field(0).SetString(chosen.name)
	default:
		v.Field(0).SetString(chosen.name)
		r.fill(chosen.payload, v.Field(1))
	}
}

func (r *random) dict(o *op, v reflect.Value) {
	n := r.length(o.max)
	if o.dynamic {
		// One pair at most: keys must differ and be in order to come back as they were.
		n = min(n, 1)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			r.fill(o.key, v.Index(i).Field(0))
			r.fill(o.elem, v.Index(i).Field(1))
		}
		return
	}
	for range n {
		if v.IsNil() {
			v.Set(reflect.MakeMap(o.typ))
		}
		key, value := reflect.New(o.key.typ).Elem(), reflect.New(o.elem.typ).Elem()
		r.fill(o.key, key)
		r.fill(o.elem, value)
		v.SetMapIndex(key, value)
	}
}

func (r *random) leaf(o *op, v reflect.Value) {
	switch o.kind {
	case kindBool:
		v.SetBool(r.IntN(2) == 0)
	case kindU8, kindUint:
		v.SetUint(r.integer())
	case kindI8, kindInt:
		v.SetInt(int64(r.integer()))
	case kindU128:
		v.Set(reflect.ValueOf(Uint128{r.integer(), r.integer()}))
	case kindI128:
		v.Set(reflect.ValueOf(Int128{int64(r.integer()), r.integer()}))
	case kindF32:
		setFloat32(v, math.Float32frombits(r.Uint32()))
	case kindF64:
		v.SetFloat(math.Float64frombits(r.Uint64()))
	case kindChar:
		v.SetInt(int64(r.char()))
	case kindString:
		v.SetString(r.text(int(min(uint64(r.IntN(200)), o.max))))
	case kindBytes:
		if n := int(min(uint64(r.IntN(200)), o.max)); n > 0 || o.dynamic {
			v.SetBytes([]byte(r.text(n)))
		}
	case kindRaw:
		for i := range o.n {
			v.Index(i).SetUint(r.Uint64())
		}
	}
}

func TestRandomValuesRoundTripAndTheirPrefixesFail(t *testing.T) {
	r := newRandom(t)
	for _, typ := range []reflect.Type{
		reflect.TypeFor[offer](), reflect.TypeFor[numbers](), reflect.TypeFor[list](), reflect.TypeFor[specSource](),
	} {
		p, err := planOf(typ)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			want, got := reflect.New(typ), reflect.New(typ)
			r.fill(p.root, want.Elem())
			wire, err := Marshal(want.Interface())
			if err != nil {
				t.Fatal(err)
			}
			if err := Unmarshal(wire, got.Interface()); err != nil {
				t.Fatal(err)
			}
			again, err := Marshal(got.Interface())
			if err != nil || !bytes.Equal(wire, again) {
				t.Fatalf("%x became %x (%v)", wire, again, err)
			}
			if typ != reflect.TypeFor[numbers]() && !reflect.DeepEqual(want.Interface(), got.Interface()) {
				t.Fatalf("%+v became %+v", want.Elem(), got.Elem())
			}
			checkPrefixes(t, wire, typ)
		}
	}
}

func checkPrefixes(t *testing.T, wire []byte, typ reflect.Type) {
	t.Helper()
	for n := range wire {
		if err := Unmarshal(wire[:n], reflect.New(typ).Interface()); !errors.Is(err, ErrTruncated) {
			t.Fatalf("%s: first %d of %x: %v", typ, n, wire, err)
		}
	}
}

func TestRandomDynamicValuesRoundTrip(t *testing.T) {
	r := newRandom(t)
	for _, file := range vectorFiles(t) {
		v := loadVectors(t, file)
		for _, row := range v.Valid {
			typ, err := ParseType(row.Type, v.Types)
			if err != nil {
				t.Fatal(err)
			}
			want, got := Value{Type: typ}, Value{Type: typ}
			r.fill(typ.plan.root, reflect.ValueOf(&want.V).Elem())
			wire, err := strict.Marshal(want)
			if err != nil {
				t.Fatalf("%s: %v", row.Type, err)
			}
			if err := strict.Unmarshal(wire, &got); err != nil {
				t.Fatalf("%s: %x: %v", row.Type, wire, err)
			}
			again, err := strict.Marshal(got)
			if err != nil || !bytes.Equal(wire, again) {
				t.Fatalf("%s: %x became %x (%v)", row.Type, wire, again, err)
			}
		}
	}
}
