// Package order depends on the order of a map.
package order

import (
	"maps"
	"reflect"
	"slices"
)

type set map[string]bool

func plain(m map[int]int) {
	for range m { // want order "range over a map"
	}
}

func named(s set) {
	for k := range s { // want order "range over a map"
		_ = k
	}
}

func generic[M ~map[int]int](m M) {
	for range m { // want order "range over a map"
	}
}

type keyed interface{ inner }

type inner interface{ ~map[int]int }

func embedded[M keyed](m M) {
	for range m { // want order "range over a map"
	}
}

func iterated(m map[int]int) {
	for range maps.Keys(m) { // want order "maps.Keys"
	}
	_ = slices.Collect(maps.Values(m))    // want order "maps.Values"
	_ = slices.Sorted(pass(maps.Keys(m))) // want order "maps.Keys"
	each := maps.All[map[int]int]         // want order "maps.All"
	_ = each
}

func pass[T any](v T) T { return v }

func reflected(v reflect.Value) {
	_ = v.MapKeys()  // want order "MapKeys"
	_ = v.MapRange() // want order "MapRange"
}
