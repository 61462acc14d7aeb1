package postcard

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// The JSON of the vector files, to and from dynamic values. Both follow the ops of the type, so
// that no type or value of a particular file is known here.

func bits32(f float32) uint32   { return math.Float32bits(f) }
func bits64Of(f float64) uint64 { return math.Float64bits(f) }

func plainJSON(t testing.TB, raw json.RawMessage) any {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func fromText(t testing.TB, typ *Type, raw json.RawMessage) any {
	v, err := dynamicOf(typ.plan.root, plainJSON(t, raw))
	if err != nil {
		t.Fatalf("%s: %v", typ, err)
	}
	return v
}

// dynamicOf turns plain JSON into a dynamic value.
func dynamicOf(o *op, j any) (any, error) {
	switch o.kind {
	case kindBox:
		return dynamicOf(o.elem, j)
	case kindUnit:
		return struct{}{}, wrong(j != nil, o, j)
	case kindBool:
		b, ok := j.(bool)
		return b, wrong(!ok, o, j)
	case kindU8, kindI8, kindUint, kindInt, kindU128, kindI128:
		return integerOf(o, j)
	case kindF32, kindF64:
		return floatOf(o, j)
	case kindChar, kindString, kindBytes:
		return textOf(o, j)
	case kindOption:
		return optionOf(o, j)
	case kindSeq, kindArray:
		return listOf(o.elem, j)
	case kindStruct:
		return structOf(o, j)
	case kindEnum:
		return variantOf(o, j)
	case kindMap:
		return pairsOf(o, j)
	}
	return nil, fmt.Errorf("kind %d", o.kind)
}

func wrong(isWrong bool, o *op, j any) error {
	if isWrong {
		return fmt.Errorf("%T for %s", j, o.schema())
	}
	return nil
}

func integerOf(o *op, j any) (any, error) {
	text, ok := j.(string)
	if number, isNumber := j.(json.Number); isNumber {
		text, ok = number.String(), true
	}
	n, parsed := new(big.Int).SetString(text, 10)
	if !ok || !parsed {
		return nil, wrong(true, o, j)
	}
	low := new(big.Int).And(n, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	high := new(big.Int).Rsh(n, 64)
	switch o.kind {
	case kindU128:
		return Uint128{Hi: high.Uint64(), Lo: low}, nil
	case kindI128:
		return Int128{Hi: high.Int64(), Lo: low}, nil
	}
	v := reflect.New(o.typ).Elem()
	if v.CanUint() {
		v.SetUint(low)
	} else {
		v.SetInt(int64(low))
	}
	return v.Interface(), wrong(fmt.Sprint(v.Interface()) != n.String(), o, j)
}

func floatOf(o *op, j any) (any, error) {
	text, ok := j.(string)
	if !ok {
		return nil, wrong(true, o, j)
	}
	if bits, isNaN := strings.CutPrefix(text, "nan:0x"); isNaN {
		n, err := strconv.ParseUint(bits, 16, 64)
		if o.kind == kindF32 {
			return math.Float32frombits(uint32(n)), err
		}
		return math.Float64frombits(n), err
	}
	if o.kind == kindF32 {
		f, err := strconv.ParseFloat(text, 32)
		return float32(f), err
	}
	return strconv.ParseFloat(text, 64)
}

func textOf(o *op, j any) (any, error) {
	text, ok := j.(string)
	if !ok {
		return nil, wrong(true, o, j)
	}
	switch o.kind {
	case kindString:
		return text, nil
	case kindBytes:
		return hex.DecodeString(text)
	}
	r, size := utf8.DecodeRuneInString(text)
	return Char(r), wrong(size != len(text), o, j)
}

func optionOf(o *op, j any) (any, error) {
	if j == nil {
		return (*any)(nil), nil
	}
	some, ok := j.(map[string]any)
	inner, has := some["some"]
	if !ok || !has {
		return nil, wrong(true, o, j)
	}
	v, err := dynamicOf(o.elem, inner)
	return &v, err
}

func listOf(elem *op, j any) (any, error) {
	items, ok := j.([]any)
	if !ok {
		return nil, wrong(true, elem, j)
	}
	list := make([]any, len(items))
	for i, item := range items {
		v, err := dynamicOf(elem, item)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func structOf(o *op, j any) (any, error) {
	list := make([]any, len(o.fields))
	object, isObject := j.(map[string]any)
	items, isList := j.([]any)
	if len(object) != len(list) && len(items) != len(list) || !isObject && !isList {
		return nil, wrong(true, o, j)
	}
	for i, f := range o.fields {
		item, has := object[f.name]
		if f.name == "" && isList {
			item, has = items[i], true
		}
		v, err := dynamicOf(f.op, item)
		if err != nil || !has {
			return nil, fmt.Errorf("field %s: %w", f.name, wrong(true, o, j))
		}
		list[i] = v
	}
	return list, nil
}

func variantOf(o *op, j any) (any, error) {
	object, ok := j.(map[string]any)
	if !ok || len(object) != 1 {
		return nil, wrong(true, o, j)
	}
	for _, v := range o.variants {
		inner, has := object[v.name]
		switch {
		case !has:
		case v.payload == nil:
			return Variant{Name: v.name}, wrong(inner != nil, o, j)
		default:
			payload, err := dynamicOf(v.payload, inner)
			return Variant{v.name, payload}, err
		}
	}
	return nil, wrong(true, o, j)
}

func pairsOf(o *op, j any) (any, error) {
	items, ok := j.([]any)
	if !ok {
		return nil, wrong(true, o, j)
	}
	pairs := make([]Pair, len(items))
	for i, item := range items {
		kv, ok := item.([]any)
		if !ok || len(kv) != 2 {
			return nil, wrong(true, o, item)
		}
		key, err := dynamicOf(o.key, kv[0])
		if err != nil {
			return nil, err
		}
		value, err := dynamicOf(o.elem, kv[1])
		if err != nil {
			return nil, err
		}
		pairs[i] = Pair{key, value}
	}
	return pairs, nil
}

// toText turns a dynamic value into plain JSON as encoding/json would have read it.
func toText(o *op, v any) (any, error) {
	switch o.kind {
	case kindBox:
		return toText(o.elem, v)
	case kindUnit:
		return nil, nil
	case kindBool, kindString:
		return v, nil
	case kindU8, kindI8, kindUint, kindInt:
		if o.width == 64 {
			return fmt.Sprint(v), nil
		}
		return json.Number(fmt.Sprint(v)), nil
	case kindU128:
		u := v.(Uint128)
		return bigOf(new(big.Int).SetUint64(u.Hi), u.Lo), nil
	case kindI128:
		i := v.(Int128)
		return bigOf(big.NewInt(i.Hi), i.Lo), nil
	case kindF32:
		f := v.(float32)
		return floatText(float64(f), 32, fmt.Sprintf("nan:0x%08x", bits32(f))), nil
	case kindF64:
		f := v.(float64)
		return floatText(f, 64, fmt.Sprintf("nan:0x%016x", bits64Of(f))), nil
	case kindChar:
		return string(rune(v.(Char))), nil
	case kindBytes:
		return hex.EncodeToString(v.([]byte)), nil
	}
	return compositeText(o, v)
}

func bigOf(high *big.Int, low uint64) string {
	n := high.Lsh(high, 64)
	return n.Add(n, new(big.Int).SetUint64(low)).String()
}

func floatText(f float64, width int, nan string) string {
	switch {
	case math.IsNaN(f):
		return nan
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	mantissa, exponent, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, width), "e")
	n, _ := strconv.Atoi(exponent)
	return mantissa + "e" + strconv.Itoa(n)
}

func compositeText(o *op, v any) (any, error) {
	switch o.kind {
	case kindOption:
		p := v.(*any)
		if p == nil {
			return nil, nil
		}
		inner, err := toText(o.elem, *p)
		return map[string]any{"some": inner}, err
	case kindSeq, kindArray:
		items := v.([]any)
		list := make([]any, len(items))
		for i := range items {
			item, err := toText(o.elem, items[i])
			if err != nil {
				return nil, err
			}
			list[i] = item
		}
		return list, nil
	case kindStruct:
		return structText(o, v.([]any))
	case kindEnum:
		chosen := v.(Variant)
		for _, variant := range o.variants {
			if variant.name == chosen.Name && variant.payload == nil {
				return map[string]any{chosen.Name: nil}, nil
			}
			if variant.name == chosen.Name {
				inner, err := toText(variant.payload, chosen.Value)
				return map[string]any{chosen.Name: inner}, err
			}
		}
	case kindMap:
		return pairsText(o, v.([]Pair))
	}
	return nil, fmt.Errorf("no text for kind %d", o.kind)
}

func structText(o *op, items []any) (any, error) {
	object, list := map[string]any{}, make([]any, len(items))
	for i, f := range o.fields {
		item, err := toText(f.op, items[i])
		if err != nil {
			return nil, err
		}
		object[f.name], list[i] = item, item
	}
	if o.tuple {
		return list, nil
	}
	return object, nil
}

func pairsText(o *op, pairs []Pair) (any, error) {
	list := make([]any, len(pairs))
	for i, pair := range pairs {
		key, err := toText(o.key, pair.Key)
		if err != nil {
			return nil, err
		}
		value, err := toText(o.elem, pair.Value)
		if err != nil {
			return nil, err
		}
		list[i] = []any{key, value}
	}
	return list, nil
}
