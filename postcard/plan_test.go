package postcard

import (
	"errors"
	"reflect"
	"strings"
	"sync"
	"testing"
)

type (
	endless  *endless
	halfEnum struct {
		A *uint8 `postcard:"=0"`
		B uint8
	}
	nestedInt struct {
		Inner []struct{ Count int } `postcard:"max=4"`
	}
)

func TestPlanRefusesWhatHasNoFixedFormAndNamesTheField(t *testing.T) {
	for _, c := range []struct {
		value any
		want  error
		path  string
	}{
		{struct{ N int }{}, ErrUnsupported, ".N"},
		{struct{ N uint }{}, ErrUnsupported, ".N"},
		{struct{ N uintptr }{}, ErrUnsupported, ".N"},
		{struct{ N complex128 }{}, ErrUnsupported, ".N"},
		{struct{ F func() }{}, ErrUnsupported, ".F"},
		{struct{ C chan uint8 }{}, ErrUnsupported, ".C"},
		{struct{ E error }{}, ErrUnsupported, ".E"},
		{struct{ A any }{}, ErrUnsupported, ".A"},
		{struct{ hidden uint8 }{}, ErrUnsupported, ".hidden"},
		{struct{ E endless }{}, ErrUnsupported, ".E"},
		{nestedInt{}, ErrUnsupported, "postcard.nestedInt.Inner[].Count"},
		{struct {
			M map[float64]bool `postcard:"max=1"`
		}{}, ErrUnsupported, ".M[key]"},
		{struct {
			M map[*uint8]bool `postcard:"max=1"`
		}{}, ErrUnsupported, ".M[key]"},
		{struct {
			M map[struct{}]bool `postcard:"max=1"`
		}{}, ErrUnsupported, ".M[key]"},
		{struct{ S string }{}, ErrNoLimit, ".S"},
		{struct{ B []byte }{}, ErrNoLimit, ".B"},
		{struct{ P *string }{}, ErrNoLimit, ".P"},
		{struct{ A [2]string }{}, ErrNoLimit, ".A[]"},
		{struct {
			S []string `postcard:"max=4"`
		}{}, ErrNoLimit, ".S[]"},
		{struct {
			M map[string]bool `postcard:"max=4"`
		}{}, ErrNoLimit, ".M[key]"},
		{struct {
			M map[uint8]string `postcard:"max=4"`
		}{}, ErrNoLimit, ".M[]"},
		{"top", ErrNoLimit, "string"},
		{[]uint8{}, ErrNoLimit, "[]uint8"},
		{struct {
			N uint8 `postcard:"max=4"`
		}{}, ErrTag, ".N"},
		{struct {
			S string `postcard:"max=4,elem=4"`
		}{}, ErrTag, ".S"},
		{struct {
			S string `postcard:"max=4,key=4"`
		}{}, ErrTag, ".S"},
		{struct {
			S string `postcard:"elem=4"`
		}{}, ErrTag, ".S"},
		{struct {
			S string `postcard:"max=4,max=5"`
		}{}, ErrTag, ".S"},
		{struct {
			S string `postcard:"max=-1"`
		}{}, ErrTag, ".S"},
		{struct {
			S string `postcard:"max"`
		}{}, ErrTag, ".S"},
		{struct {
			S string `postcard:"max=4, elem=1"`
		}{}, ErrTag, ".S"},
		{struct {
			S string `postcard:""`
		}{}, ErrTag, ".S"},
		{struct {
			S string `postcard:"max=4294967296"`
		}{}, ErrTag, ".S"},
		{halfEnum{}, ErrTag, "postcard.halfEnum"},
		{struct {
			A uint8 `postcard:"=0"`
		}{}, ErrTag, ".A"},
		{struct {
			A *uint8 `postcard:"=1"`
			B *uint8 `postcard:"=1"`
		}{}, ErrTag, ".B"},
		{struct {
			A *uint8 `postcard:"=4294967296"`
		}{}, ErrTag, ".A"},
		{struct {
			A *string `postcard:"=1"`
		}{}, ErrNoLimit, ".A"},
	} {
		_, err := Marshal(c.value)
		checkPlanError(t, err, c.want, c.path)
		err = Unmarshal(nil, reflect.New(reflect.TypeOf(c.value)).Interface())
		checkPlanError(t, err, c.want, c.path)
		_, err = Schema(reflect.TypeOf(c.value))
		checkPlanError(t, err, c.want, c.path)
	}
}

func checkPlanError(t *testing.T, err, want error, path string) {
	t.Helper()
	var typed *Error
	if !errors.Is(err, want) || !errors.As(err, &typed) || typed.Op != "plan" || !strings.HasSuffix(typed.Path, path) {
		t.Errorf("got %v, want %v at %s", err, want, path)
	}
}

func TestTypesMayReferToThemselves(t *testing.T) {
	type tree struct {
		Value    uint8
		Children []tree `postcard:"max=4"`
		Left     *tree
	}
	want := tree{1, []tree{{2, nil, nil}, {3, nil, &tree{Value: 4}}}, nil}
	wire, err := Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got tree
	if err := Unmarshal(wire, &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestFirstUseByManyGoroutinesIsSafe(t *testing.T) {
	type fresh struct {
		A []offer `postcard:"max=4"`
		B *fresh
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			wire, err := Marshal(fresh{A: []offer{sampleOffer()}, B: &fresh{}})
			if err != nil {
				t.Error(err)
			}
			if err := Unmarshal(wire, new(fresh)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

func TestTypeTextThatMeansNothingIsRefused(t *testing.T) {
	names := map[string]string{
		"A": "@B", "B": "@A", "C": "newtype<@C>", "Broken": "seq<@Missing>",
		"Loop": "struct{x:@Alias}", "Alias": "@Loop",
	}
	for _, text := range []string{
		"", "u7", "seq", "seq<", "seq<u8", "seq<u8>>", "seq<>", "option<u8,u8>", "array<u8>", "array<u8,>",
		"array<u8,-1>", "array<u8,99999999999>", "map<u8>", "struct", "struct{", "struct{x}", "struct{x:}",
		"struct{:u8}", "struct{x:u8,x:u8}", "struct{x:u8,}", "enum{A,A}", "enum{A=1,B=1}", "enum{A=4294967296}",
		"enum{A=4294967295,B}=", "enum{,}", "enum{A(}", "enum{A(u8}", "tuple<u8", "@Nobody", "@A", "@C", "@Broken",
		" u8", "u8 ", "seq<u8;max=>", "seq<u8;max=x>", "string<max=", "string<max=1", "string<4>",
		strings.Repeat("option<", 5000) + "u8" + strings.Repeat(">", 5000),
	} {
		if _, err := ParseType(text, names); !errors.Is(err, ErrSyntax) {
			t.Errorf("%.40q: %v", text, err)
		}
	}
}

// The type has no finite value; reading it must end all the same.
func TestTypeThatContainsItselfIsOnlyTooDeep(t *testing.T) {
	typ, err := ParseType("@Loop", map[string]string{"Loop": "struct{x:@Alias,y:@Alias}", "Alias": "@Loop"})
	if err != nil {
		t.Fatal(err)
	}
	if err := Unmarshal(nil, &Value{Type: typ}); !errors.Is(err, ErrDepth) {
		t.Error(err)
	}
}

func TestDynamicValueOfAnotherTypeIsRefused(t *testing.T) {
	for text, value := range map[string]any{
		"u8":                         uint16(1),
		"u16":                        nil,
		"string":                     []byte("x"),
		"unit":                       nil,
		"option<u8>":                 uint8(1),
		"seq<u8>":                    []any{uint8(1), "x"},
		"array<u8,2>":                []any{uint8(1)},
		"tuple<u8,u8>":               []any{uint8(1)},
		"struct{a:u8}":               []any{nil},
		"enum{A(u8)}":                Variant{Name: "A", Value: "x"},
		"map<u8,u8>":                 []Pair{{Key: "x"}},
		"enum{A(u8,u8)}":             Variant{Name: "A", Value: []any{uint8(1)}},
		"seq<enum{A{x:option<u8>}}>": []any{Variant{Name: "A", Value: []any{nil}}},
	} {
		typ, err := ParseType(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Marshal(Value{typ, value}); !errors.Is(err, ErrType) {
			t.Errorf("%s: %v", text, err)
		}
	}
	typ, _ := ParseType("enum{A}", nil)
	if _, err := Marshal(Value{typ, Variant{Name: "B"}}); !errors.Is(err, ErrDiscriminant) {
		t.Error(err)
	}
}

func TestWrongTargetsAreRefused(t *testing.T) {
	var nilOffer *offer
	var nilValue *Value
	for _, v := range []any{nil, offer{}, nilOffer, nilValue, &Value{}, Value{}} {
		if err := Unmarshal(nil, v); !errors.Is(err, ErrType) {
			t.Errorf("Unmarshal into %T: %v", v, err)
		}
	}
	for _, v := range []any{nil, nilOffer, nilValue, &Value{}, Value{}} {
		if _, err := Marshal(v); !errors.Is(err, ErrType) {
			t.Errorf("Marshal of %T: %v", v, err)
		}
	}
}
