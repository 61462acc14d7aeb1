package postcard

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The look-alike of a message: identifiers, options, an enum, nested lists.
type (
	attemptID [16]byte
	phase     uint32
	kilobytes uint64

	offer struct {
		Lease   attemptID
		Session attemptID
		Serial  uint64
		Sent    int64
		Spec    specSource
		Retry   *uint32
		Env     []variable          `postcard:"max=64"`
		Labels  map[string]string   `postcard:"max=16,key=64,elem=256"`
		Paths   []string            `postcard:"max=8,elem=32"`
		Blocks  [][]byte            `postcard:"max=4,elem=16"`
		Matrix  [][]uint16          `postcard:"max=4,elem=4"`
		Note    *string             `postcard:"max=16"`
		Digests [2][32]byte         //
		Nested  **bool              //
		Empty   []struct{}          `postcard:"max=100"`
		Codes   map[uint16]struct{} `postcard:"max=8"`
	}

	variable struct {
		Name   string `postcard:"max=64"`
		Value  []byte `postcard:"max=1024"`
		Secret bool
	}

	specSource struct {
		Inline *[]byte   `postcard:"=0,max=64"`
		Ref    *specRef  `postcard:"=3"`
		None   *struct{} `postcard:"=300"`
	}

	specRef struct {
		Digest [32]byte
		Size   kilobytes
	}

	numbers struct {
		A int8
		B int16
		C int32
		D int64
		E uint8
		F uint16
		G uint32
		H uint64
		I Uint128
		J Int128
		K float32
		L float64
		M Char
		N bool
		O phase
	}

	list struct {
		Head uint16
		Tail *list
	}
)

func sampleOffer() offer {
	retry, note, yes := uint32(3), "a note", true
	flag := &yes
	return offer{
		Lease: attemptID{1}, Session: attemptID{15: 2}, Serial: 300, Sent: -1,
		Spec:   specSource{Ref: &specRef{Digest: [32]byte{5}, Size: 70000}},
		Retry:  &retry,
		Env:    []variable{{Name: "PATH", Value: []byte("/bin")}, {Name: "TOKEN", Secret: true}},
		Labels: map[string]string{"z": "1", "a": "2", "é": "3"},
		Paths:  []string{"out", "out/log"},
		Blocks: [][]byte{{1, 2}, nil, {3}}, Matrix: [][]uint16{{1, 300}, nil},
		Note: &note, Nested: &flag, Empty: make([]struct{}, 3),
		Codes: map[uint16]struct{}{300: {}, 2: {}},
	}
}

func TestStructsHaveTheBytesOfTheirParts(t *testing.T) {
	some := uint32(300)
	for _, c := range []struct {
		value any
		wire  string
	}{
		{struct{ A, B uint16 }{1, 300}, "01ac02"},
		{struct{ ID attemptID }{attemptID{0xab}}, "ab" + strings.Repeat("00", 15)},
		{struct {
			Name string `postcard:"max=5"`
		}{"é"}, "02c3a9"},
		{struct{ P *uint32 }{&some}, "01ac02"},
		{struct{ P *uint32 }{}, "00"},
		{struct{ P phase }{300}, "ac02"},
		{specSource{None: &struct{}{}}, "ac02"},
		{specSource{Inline: &[]byte{7}}, "000107"},
		{struct {
			M map[int16]bool `postcard:"max=3"`
		}{map[int16]bool{300: true, -2: false, 0: true}}, "03030000" + "01" + "d80401"},
		{struct {
			L []struct{} `postcard:"max=3"`
		}{make([]struct{}, 3)}, "03"},
		{list{1, &list{2, nil}}, "01010200"},
		{struct{ C Char }{'世'}, "03e4b896"},
		{struct{ U Uint128 }{Uint128{1, 0}}, "80808080808080808002"},
		{struct{ I Int128 }{Int128{-1, 1<<64 - 1}}, "01"},
	} {
		got, err := Marshal(c.value)
		if want := unhex(t, c.wire); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%+v: %x, want %x (%v)", c.value, got, want, err)
			continue
		}
		back := reflect.New(reflect.TypeOf(c.value))
		if err := Unmarshal(got, back.Interface()); err != nil {
			t.Errorf("%+v: %v", c.value, err)
		}
		if diff := cmp.Diff(c.value, back.Elem().Interface()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestMessageRoundTripsAndItsPrefixesFail(t *testing.T) {
	want := sampleOffer()
	wire, err := Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	var got offer
	if err := Unmarshal(wire, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	for n := range wire {
		if err := Unmarshal(wire[:n], &got); !errors.Is(err, ErrTruncated) {
			t.Errorf("first %d bytes: %v", n, err)
		}
	}
}

func TestSchemaShowsEverythingThatIsFrozen(t *testing.T) {
	for _, c := range []struct {
		typ  reflect.Type
		want string
	}{
		{
			reflect.TypeFor[offer](),
			"struct{Lease:array<u8,16>,Session:array<u8,16>,Serial:u64,Sent:i64," +
				"Spec:enum{Inline(bytes<max=64>)=0,Ref(struct{Digest:array<u8,32>,Size:u64})=3,None=300}," +
				"Retry:option<u32>,Env:seq<struct{Name:string<max=64>,Value:bytes<max=1024>,Secret:bool};max=64>," +
				"Labels:map<string<max=64>,string<max=256>;max=16>,Paths:seq<string<max=32>;max=8>," +
				"Blocks:seq<bytes<max=16>;max=4>,Matrix:seq<seq<u16;max=4>;max=4>,Note:option<string<max=16>>," +
				"Digests:array<array<u8,32>,2>,Nested:option<option<bool>>,Empty:seq<unit;max=100>," +
				"Codes:map<u16,unit;max=8>}",
		},
		{
			reflect.TypeFor[numbers](),
			"struct{A:i8,B:i16,C:i32,D:i64,E:u8,F:u16,G:u32,H:u64,I:u128,J:i128,K:f32,L:f64,M:char,N:bool,O:u32}",
		},
		{reflect.TypeFor[list](), "@list where list=struct{Head:u16,Tail:option<@list>}"},
	} {
		got, err := Schema(c.typ)
		if err != nil || got != c.want {
			t.Errorf("%s\n got %s\nwant %s (%v)", c.typ, got, c.want, err)
		}
	}
}

func TestTextTypeOfASchemaReadsTheSameBytes(t *testing.T) {
	for _, value := range []any{sampleOffer(), numbers{A: -1, I: Uint128{1, 2}, M: 'é'}, list{1, &list{2, nil}}} {
		text, err := Schema(reflect.TypeOf(value))
		if err != nil {
			t.Fatal(err)
		}
		typ, err := ParseType(text, nil)
		if err != nil || typ.String() != text {
			t.Fatalf("%s became %s (%v)", text, typ, err)
		}
		wire, err := Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		dynamic := Value{Type: typ}
		if err := Unmarshal(wire, &dynamic); err != nil {
			t.Fatal(err)
		}
		again, err := Marshal(dynamic)
		if err != nil || !bytes.Equal(wire, again) {
			t.Errorf("%x became %x (%v)", wire, again, err)
		}
	}
}
