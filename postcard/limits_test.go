package postcard

import (
	"bytes"
	"errors"
	"reflect"
	"runtime"
	"strings"
	"testing"
)

// Encoded with looser limits, decoded with tighter ones: the two have the same bytes.
type (
	loose struct {
		S string            `postcard:"max=1000"`
		B []byte            `postcard:"max=1000"`
		L []uint16          `postcard:"max=1000"`
		E []struct{}        `postcard:"max=1000"`
		M map[uint16]bool   `postcard:"max=1000"`
		N []string          `postcard:"max=1000,elem=1000"`
		K map[string]string `postcard:"max=1000,key=1000,elem=1000"`
		P *string           `postcard:"max=1000"`
		V looseVariant
	}
	looseVariant struct {
		A *[]byte `postcard:"=0,max=1000"`
	}
	tight struct {
		S string            `postcard:"max=3"`
		B []byte            `postcard:"max=3"`
		L []uint16          `postcard:"max=3"`
		E []struct{}        `postcard:"max=3"`
		M map[uint16]bool   `postcard:"max=3"`
		N []string          `postcard:"max=3,elem=3"`
		K map[string]string `postcard:"max=3,key=3,elem=3"`
		P *string           `postcard:"max=3"`
		V tightVariant
	}
	tightVariant struct {
		A *[]byte `postcard:"=0,max=3"`
	}
)

func TestLimitsHoldAtTheBoundAndOnePastInBothDirections(t *testing.T) {
	three, four := strings.Repeat("x", 3), strings.Repeat("x", 4)
	fill := func(n int) map[uint16]bool {
		m := map[uint16]bool{}
		for i := range n {
			m[uint16(i)] = true
		}
		return m
	}
	for path, set := range map[string]func(*loose, int){
		".S":        func(l *loose, n int) { l.S = strings.Repeat("x", n) },
		".B":        func(l *loose, n int) { l.B = make([]byte, n) },
		".L":        func(l *loose, n int) { l.L = make([]uint16, n) },
		".E":        func(l *loose, n int) { l.E = make([]struct{}, n) },
		".M":        func(l *loose, n int) { l.M = fill(n) },
		".N":        func(l *loose, n int) { l.N = make([]string, n) },
		".N[0]":     func(l *loose, n int) { l.N = []string{four[:n]} },
		".K[0].key": func(l *loose, n int) { l.K = map[string]string{four[:n]: three} },
		".K[0]":     func(l *loose, n int) { l.K = map[string]string{three: four[:n]} },
		".P":        func(l *loose, n int) { s := four[:n]; l.P = &s },
		".V.A":      func(l *loose, n int) { b := make([]byte, n); l.V.A = &b },
	} {
		for n := 3; n <= 4; n++ {
			l := loose{V: looseVariant{A: &[]byte{}}}
			set(&l, n)
			wire, err := Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			var back tight
			decodeErr := Unmarshal(wire, &back)
			converted := tighten(l)
			_, encodeErr := Marshal(converted)
			for direction, err := range map[string]error{"decode": decodeErr, "encode": encodeErr} {
				if n == 3 && err != nil {
					t.Errorf("%s of %d at %s: %v", direction, n, path, err)
				}
				var typed *Error
				if n == 4 && (!errors.As(err, &typed) || !errors.Is(err, ErrLimit) || typed.Path != "postcard.tight"+path) {
					t.Errorf("%s of %d at %s: %v", direction, n, path, err)
				}
			}
		}
	}
}

func tighten(l loose) tight {
	t := tight{S: l.S, B: l.B, L: l.L, E: l.E, M: l.M, N: l.N, K: l.K, P: l.P}
	t.V.A = l.V.A
	return t
}

func chain(n int) *list {
	var l *list
	for range n {
		l = &list{Tail: l}
	}
	return l
}

func TestDepthIsBoundedInBothDirections(t *testing.T) {
	// A list of n is n structs and n options.
	for _, c := range []struct {
		options Options
		fits    int
	}{{Options{}, DefaultMaxDepth / 2}, {Options{MaxDepth: 8}, 4}, {Options{MaxDepth: 1 << 30}, maxDepth / 2}} {
		wire, err := c.options.Marshal(chain(c.fits))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.options.Unmarshal(wire, new(list)); err != nil {
			t.Error(err)
		}
		if _, err := c.options.Marshal(chain(c.fits + 1)); !errors.Is(err, ErrDepth) {
			t.Errorf("encode: %v", err)
		}
		deeper := append(bytes.Repeat([]byte{0, 1}, c.fits), 0, 0)
		if err := c.options.Unmarshal(deeper, new(list)); !errors.Is(err, ErrDepth) {
			t.Errorf("decode: %v", err)
		}
	}
}

func TestPointerCycleIsTooDeep(t *testing.T) {
	l := &list{}
	l.Tail = l
	if _, err := Marshal(l); !errors.Is(err, ErrDepth) {
		t.Error(err)
	}
}

func TestAnnouncedLengthsAllocateNothing(t *testing.T) {
	huge := [][]byte{
		unhex(t, "80808080808080801000"), // 2^60
		unhex(t, "ffffffffffffffffff01"), // 2^64-1
		unhex(t, "ffffffff0f"),           // 2^32-1
		unhex(t, "808080800400"),         // 2^30
	}
	for _, text := range []string{
		"string", "bytes", "seq<u8>", "seq<u64>", "seq<string>", "seq<unit>", "seq<struct{}>", "seq<array<u8,0>>",
		"seq<tuple<unit,struct{a:unit}>>", "map<u8,u8>", "map<unit,unit>", "seq<seq<unit>>", "char",
		"seq<array<unit,1000000>>", "array<array<array<unit,1000>,1000>,1000>", "array<u8,2147483647>",
	} {
		typ, err := ParseType(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, wire := range huge {
			for _, lenient := range []bool{false, true} {
				const bound = 1 << 16
				var err error
				options := Options{MaxAlloc: bound, Lenient: lenient}
				used := allocated(func() { err = options.Unmarshal(wire, &Value{Type: typ}) })
				if err == nil || used > bound+uint64(len(wire))+4096 {
					t.Errorf("%s from %x: %d bytes allocated, %v", text, wire, used, err)
				}
			}
		}
	}
}

// Every item is one byte on the wire and much more in memory.
func TestMemoryOfHostileInputStaysUnderItsBound(t *testing.T) {
	type fat struct {
		A, B, C, D, E, F, G, H *uint64
	}
	type message struct {
		Fats []fat             `postcard:"max=1000000"`
		Maps map[uint32]string `postcard:"max=1000000,elem=4"`
		Flat []*struct{}       `postcard:"max=1000000"`
	}
	fats := append(appendVarint(nil, 100_000), make([]byte, 800_002)...)
	flat := append([]byte{0, 0}, appendVarint(nil, 800_000)...)
	flat = append(flat, bytes.Repeat([]byte{1}, 800_000)...)
	maps := append([]byte{0}, appendVarint(nil, 200_000)...)
	for i := range 200_000 {
		maps = append(appendVarint(maps, uint64(i)), 0)
	}
	for name, wire := range map[string][]byte{"fats": fats, "maps": append(maps, 0), "flat": flat} {
		for _, bound := range []int{1 << 10, 1 << 20, 64 << 20} {
			var err error
			used := allocated(func() { _, err = Options{MaxAlloc: bound}.Take(wire, new(message)) })
			// The allocator rounds sizes up, by an eighth at most.
			if limit := uint64(bound + len(wire)); used > limit+limit/8+4096 {
				t.Errorf("%s: %d bytes allocated, bound is %d (%v)", name, used, limit, err)
			}
			if bound == 64<<20 && err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestArraysWithoutBytesTakeNoTime(t *testing.T) {
	type empties struct {
		A [1 << 30][1 << 30]struct{}
		B [1 << 30][0]uint64
		C [1 << 30]struct{ X, Y struct{} }
		D []struct{} `postcard:"max=4000000000"`
	}
	wire, err := Marshal(new(empties))
	if err != nil || !bytes.Equal(wire, []byte{0}) {
		t.Fatalf("%x, %v", wire, err)
	}
	var e empties
	if err := Unmarshal(unhex(t, "ffffffff07"), &e); err != nil || len(e.D) != 1<<31-1 {
		t.Errorf("%d, %v", len(e.D), err)
	}
}

func TestDecodedValueSharesNothing(t *testing.T) {
	first := sampleOffer()
	wire, err := Marshal(first)
	if err != nil {
		t.Fatal(err)
	}
	var got offer
	if err := Unmarshal(wire, &got); err != nil {
		t.Fatal(err)
	}
	kept := got
	clear(wire)
	if !reflect.DeepEqual(got, first) {
		t.Error("the value changed with the input")
	}
	second := sampleOffer()
	second.Env[0].Name, second.Paths[0], *second.Retry = "HOME", "else", 9
	wire, _ = Marshal(second)
	if err := Unmarshal(wire, &got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(kept, first) || !reflect.DeepEqual(got, second) {
		t.Error("decoding wrote through what an earlier value holds")
	}
}

func TestAppendKeepsWhatWasThere(t *testing.T) {
	got, err := Append([]byte("head"), struct{ N uint16 }{300})
	if err != nil || string(got) != "head\xac\x02" {
		t.Errorf("%q, %v", got, err)
	}
	got, err = Append([]byte("head"), struct {
		N uint16
		S string `postcard:"max=1"`
	}{300, "too long"})
	if err == nil || string(got) != "head" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestEnumNeedsExactlyOneVariant(t *testing.T) {
	for _, s := range []specSource{{}, {Inline: &[]byte{}, None: &struct{}{}}} {
		if _, err := Marshal(s); !errors.Is(err, ErrDiscriminant) {
			t.Error(err)
		}
	}
	got := specSource{None: &struct{}{}}
	if err := Unmarshal([]byte{0, 0}, &got); err != nil || got.None != nil || got.Inline == nil {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestErrorsSayWhereAndNotWhat(t *testing.T) {
	secret := "hunter2"
	o := sampleOffer()
	o.Env = append(o.Env, variable{Name: "OK", Value: []byte(secret)}, variable{Name: secret + "\xff"})
	_, err := Marshal(o)
	if want := "postcard: encode postcard.offer.Env[3].Name: string is not UTF-8"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	type message struct {
		Prefix uint16
		Inner  []variable `postcard:"max=4"`
	}
	wire := append([]byte{1, 1, 8}, secret...)
	wire = append(wire, 0xff, 0, 0)
	err = Unmarshal(wire, new(message))
	if want := "postcard: decode postcard.message.Inner[0].Name at byte 2: string is not UTF-8"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	err = Unmarshal([]byte{1, 0, 0}, new(message))
	var typed *Error
	if !errors.As(err, &typed) || !errors.Is(err, ErrTrailing) || typed.Offset != 2 {
		t.Error(err)
	}
}
