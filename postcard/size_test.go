package postcard

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestMaxSizeIsReachedAndNotPassed(t *testing.T) {
	type message struct {
		A uint16
		B *int64
		C string           `postcard:"max=200"`
		D []Uint128        `postcard:"max=2"`
		E map[uint8]string `postcard:"max=2,elem=3"`
		F specSource
		G [2]Char
		H bool
		I float64
		J [4]byte
		K []struct{} `postcard:"max=300"`
	}
	low, inline, wide := int64(math.MinInt64), make([]byte, 64), Uint128{math.MaxUint64, math.MaxUint64}
	wire, err := Marshal(message{
		A: math.MaxUint16, B: &low, C: strings.Repeat("x", 200), D: []Uint128{wide, wide},
		E: map[uint8]string{1: "abc", 2: "abc"}, F: specSource{Inline: &inline},
		G: [2]Char{'😀', '😀'}, K: make([]struct{}, 300),
	})
	if err != nil {
		t.Fatal(err)
	}
	if most, err := MaxSize(reflect.TypeFor[message]()); err != nil || most != len(wire) {
		t.Errorf("MaxSize is %d, the largest message has %d bytes (%v)", most, len(wire), err)
	}
}

func TestRandomValuesStayWithinMaxSize(t *testing.T) {
	r := newRandom(t)
	most, err := MaxSize(reflect.TypeFor[offer]())
	if err != nil {
		t.Fatal(err)
	}
	p, _ := planOf(reflect.TypeFor[offer]())
	for range 200 {
		var o offer
		r.fill(p.root, reflect.ValueOf(&o).Elem())
		if wire, err := Marshal(o); err != nil || len(wire) > most {
			t.Fatalf("%d bytes, MaxSize is %d (%v)", len(wire), most, err)
		}
	}
}

func TestRecursiveTypeHasNoMaxSize(t *testing.T) {
	if _, err := MaxSize(reflect.TypeFor[list]()); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	if _, err := MaxSize(reflect.TypeFor[struct{ N int }]()); !errors.Is(err, ErrUnsupported) {
		t.Error(err)
	}
	if _, err := MaxSize(nil); !errors.Is(err, ErrType) {
		t.Error(err)
	}
	if _, err := Schema(nil); !errors.Is(err, ErrType) {
		t.Error(err)
	}
}
