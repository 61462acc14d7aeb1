package postcard

import (
	"bytes"
	"reflect"
	"slices"
)

// Maps are written in ascending order of their keys, as Rust's BTreeMap does: numbers by value,
// strings by bytes, structs field by field, None before Some, enums by discriminant. The order
// makes the encoding of a map unique, so the strict decoder demands it. The reference takes keys
// in any order and lets the last of two equal keys win; so does the lenient decoder.

// dict encodes a map.
func (e *encoder) dict(o *op, src reflect.Value) error {
	if err := e.count(o, src.Len()); err != nil {
		return err
	}
	if err := e.enter(); err != nil {
		return err
	}
	start := len(e.buf)
	entries, err := e.entries(o, src)
	if err != nil {
		return err
	}
	if err := e.arrange(o.key, start, entries); err != nil {
		return err
	}
	e.depth++
	return nil
}

// entry is where the key and the value of a pair stand in the buffer.
type entry struct{ start, value, end int }

func (e *encoder) entries(o *op, src reflect.Value) ([]entry, error) {
	entries := make([]entry, 0, src.Len())
	if o.dynamic {
		for i := range src.Len() {
			pair := src.Index(i)
			if err := e.entry(o, &entries, pair.Field(0), pair.Field(1)); err != nil {
				return nil, err
			}
		}
		return entries, nil
	}
	key, value := reflect.New(o.key.typ).Elem(), reflect.New(o.elem.typ).Elem()
	for iter := src.MapRange(); iter.Next(); {
		key.SetIterKey(iter)
		value.SetIterValue(iter)
		if err := e.entry(o, &entries, key, value); err != nil {
			return nil, err
		}
	}
	return entries, nil
}

func (e *encoder) entry(o *op, entries *[]entry, key, value reflect.Value) error {
	at := entry{start: len(e.buf)}
	if err := e.value(o.key, key); err != nil {
		return withinItem(within(err, ".key"), len(*entries))
	}
	at.value = len(e.buf)
	if err := e.value(o.elem, value); err != nil {
		return withinItem(err, len(*entries))
	}
	at.end = len(e.buf)
	*entries = append(*entries, at)
	return nil
}

// arrange sorts the pairs that stand in the buffer from start on.
func (e *encoder) arrange(key *op, start int, entries []entry) error {
	byKey := func(a, b entry) int {
		return key.compareKeys(e.buf[a.start:a.value], e.buf[b.start:b.value])
	}
	if !slices.IsSortedFunc(entries, byKey) {
		slices.SortFunc(entries, byKey)
		unsorted := bytes.Clone(e.buf[start:])
		e.buf = e.buf[:start]
		for i, at := range entries {
			size := at.end - at.start
			entries[i] = entry{len(e.buf), len(e.buf) + at.value - at.start, len(e.buf) + size}
			e.buf = append(e.buf, unsorted[at.start-start:at.end-start]...)
		}
	}
	for i := range entries[min(1, len(entries)):] {
		if byKey(entries[i], entries[i+1]) == 0 {
			return refuse(ErrMapKey, "")
		}
	}
	return nil
}

// dict decodes a map.
func (d *decoder) dict(o *op, dst reflect.Value) error {
	n, err := d.count(o.max, o.key.least+o.elem.least)
	if err != nil {
		return err
	}
	if err := d.enter(); err != nil {
		return err
	}
	if o.dynamic {
		err = d.pairs(o, dst, n)
	} else {
		err = d.goMap(o, dst, n)
	}
	d.depth++
	return err
}

func (d *decoder) goMap(o *op, dst reflect.Value, n int) error {
	if n == 0 {
		dst.SetZero()
		return nil
	}
	if err := d.chargeMap(o, n); err != nil {
		return err
	}
	m := reflect.MakeMapWithSize(o.typ, n)
	key, value := reflect.New(o.key.typ).Elem(), reflect.New(o.elem.typ).Elem()
	var last []byte
	for i := range n {
		key.SetZero()
		value.SetZero()
		raw, err := d.pair(o, i, last, key, value)
		if err != nil {
			return err
		}
		last = raw
		m.SetMapIndex(key, value)
	}
	dst.Set(m)
	return nil
}

// chargeMap guesses generously: a map keeps up to twice the entries it was made for, and a byte
// of control for each.
func (d *decoder) chargeMap(o *op, n int) error {
	for range 2 {
		if err := d.charge(n, o.key); err != nil {
			return err
		}
		if err := d.charge(n, o.elem); err != nil {
			return err
		}
		if err := d.charge(n, anyOp); err != nil {
			return err
		}
	}
	return nil
}

// pair decodes a key and its value and returns the key's bytes.
func (d *decoder) pair(o *op, i int, last []byte, key, value reflect.Value) ([]byte, error) {
	start := d.off
	if err := d.value(o.key, key); err != nil {
		return nil, withinItem(within(err, ".key"), i)
	}
	raw := d.data[start:d.off]
	if !d.lenient && i > 0 && o.key.compareKeys(last, raw) >= 0 {
		return nil, withinItem(fault(start, ErrMapKey), i)
	}
	if err := d.value(o.elem, value); err != nil {
		return nil, withinItem(err, i)
	}
	return raw, nil
}

// pairs decodes into a []Pair in the order of the keys.
func (d *decoder) pairs(o *op, dst reflect.Value, n int) error {
	if err := d.makeSlice(pairOp, dst, n); err != nil {
		return err
	}
	if err := d.charge(n, pairOp); err != nil {
		return err
	}
	keys := make([][]byte, n)
	for i := range n {
		pair, last := dst.Index(i), []byte(nil)
		if i > 0 {
			last = keys[i-1]
		}
		raw, err := d.pair(o, i, last, pair.Field(0), pair.Field(1))
		if err != nil {
			return err
		}
		keys[i] = raw
	}
	if d.lenient {
		dst.Set(reflect.ValueOf(lastWins(o.key, keys, dst.Interface().([]Pair))))
	}
	return nil
}

// lastWins sorts pairs by key and keeps the last of those with equal keys.
func lastWins(key *op, keys [][]byte, pairs []Pair) []Pair {
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return key.compareKeys(keys[a], keys[b]) })
	sorted := make([]Pair, 0, len(pairs))
	for at, i := range order {
		if at > 0 && key.compareKeys(keys[order[at-1]], keys[i]) == 0 {
			sorted = sorted[:len(sorted)-1]
		}
		sorted = append(sorted, pairs[i])
	}
	return sorted
}
