package postcard

import (
	"bytes"
	"errors"
	"reflect"
	"testing"
)

// FuzzDecode looks for panics, for errors that are not ours, and for memory beyond the bound, in
// Go types and in types given as text.
func FuzzDecode(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string, wire []byte) {
		options := Options{MaxAlloc: 1 << 20}
		for _, lenient := range []bool{false, true} {
			options.Lenient = lenient
			for _, target := range targets(text) {
				var err error
				used := allocated(func() { _, err = options.Take(wire, target) })
				// The allocator rounds up, and the fuzzer itself allocates beside us.
				if used > 8<<20 {
					t.Errorf("%d bytes allocated", used)
				}
				var typed *Error
				if err != nil && !errors.As(err, &typed) {
					t.Errorf("%T %v", err, err)
				}
			}
		}
	})
}

// FuzzDecodeEncode holds the codec to its promise: what the strict decoder takes is what the
// encoder writes, and what the lenient one takes is the same value in another form.
func FuzzDecodeEncode(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string, wire []byte) {
		for _, target := range targets(text) {
			if err := Unmarshal(wire, target); err == nil {
				again, err := Marshal(target)
				if err != nil || !bytes.Equal(wire, again) {
					t.Fatalf("%s: %x became %x (%v)", text, wire, again, err)
				}
			}
		}
		for _, target := range targets(text) {
			rest, err := Options{Lenient: true}.Take(wire, target)
			if err != nil {
				continue
			}
			canonical, err := Marshal(target)
			if err != nil || len(canonical) > len(wire)-len(rest) {
				t.Fatalf("%s: %x became %x (%v)", text, wire, canonical, err)
			}
			fresh := blank(target)
			if err := Unmarshal(canonical, fresh); err != nil {
				t.Fatalf("%s: %x: %v", text, canonical, err)
			}
			again, err := Marshal(fresh)
			if err != nil || !bytes.Equal(canonical, again) {
				t.Fatalf("%s: %x became %x (%v)", text, canonical, again, err)
			}
		}
	})
}

// FuzzParseType looks for panics, and for a type that its own description does not give back.
func FuzzParseType(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, text string, _ []byte) {
		typ, err := ParseType(text, nil)
		if err != nil {
			return
		}
		again, err := ParseType(typ.String(), nil)
		if err != nil || again.String() != typ.String() {
			t.Fatalf("%q became %q and then %q (%v)", text, typ, again, err)
		}
	})
}

func seed(f *testing.F) {
	for _, file := range vectorFiles(f) {
		v := loadVectors(f, file)
		for _, rows := range [][]vector{v.Valid, v.Invalid, v.Accepted} {
			for i, row := range rows {
				if typ, err := ParseType(row.Type, v.Types); err == nil && i%8 == 0 && len(row.Hex) < 500 {
					f.Add(typ.String(), unhex(f, row.Hex))
				}
			}
		}
	}
	wire, err := Marshal(sampleOffer())
	if err != nil {
		f.Fatal(err)
	}
	f.Add("unit", wire)
}

func targets(text string) []any {
	all := []any{new(offer), new(numbers), new(list), new(specSource)}
	if typ, err := ParseType(text, nil); err == nil {
		all = append(all, &Value{Type: typ})
	}
	return all
}

func blank(target any) any {
	if v, ok := target.(*Value); ok {
		return &Value{Type: v.Type}
	}
	return reflect.New(reflect.TypeOf(target).Elem()).Interface()
}
