package api

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of a document. Deeper or worse ones are refused before they cost anything.
const (
	maxDepth = 32
	maxWrong = 64
)

// ErrMalformed is the kind of the errors of Decode for text that is not one JSON value.
var ErrMalformed = errors.New("not JSON")

// Decode reads one JSON value into the struct that into points at, strictly: unknown fields, fields that are there
// twice, wrong types and trailing text are errors. Values that are absent or null leave the field as it is. The error
// is forge.Problems with a place for each thing that is wrong, or of the kind ErrMalformed.
func Decode(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var d decoder
	tree, err := d.read(dec, "", 0)
	if err == nil && dec.More() {
		err = errors.New("there is more behind the value")
	} else if err == nil {
		if _, tail := dec.Token(); tail != io.EOF {
			err = errors.New("there is more behind the value")
		}
	}
	if err != nil {
		return fmt.Errorf("%w: at byte %d: %w", ErrMalformed, dec.InputOffset(), err)
	}
	d.fill(reflect.ValueOf(into).Elem(), tree, "")
	if len(d.found) > 0 {
		return d.found
	}
	return nil
}

// object is a JSON object in the order in which it was written.
type object []member

type member struct {
	name  string
	value any
}

type decoder struct{ found forge.Problems }

func (d *decoder) wrong(at, format string, args ...any) {
	if len(d.found) < maxWrong {
		d.found = append(d.found, forge.Problem{Path: at, What: fmt.Sprintf(format, args...)})
	}
}

// read takes one value off the decoder.
func (d *decoder) read(dec *json.Decoder, at string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("more than %d levels", maxDepth)
	}
	token, err := dec.Token()
	if err != nil {
		if err == io.EOF {
			return nil, io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return d.readObject(dec, at, depth)
	case json.Delim('['):
		return d.readList(dec, at, depth)
	}
	return token, nil
}

func (d *decoder) readObject(dec *json.Decoder, at string, depth int) (any, error) {
	o := object{}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		here := join(at, name)
		value, err := d.read(dec, here, depth+1)
		if err != nil {
			return nil, err
		}
		if seen[name] {
			d.wrong(clip(here), "is there twice")
		}
		seen[name] = true
		o = append(o, member{name, value})
	}
	_, err := dec.Token()
	return o, err
}

func (d *decoder) readList(dec *json.Decoder, at string, depth int) (any, error) {
	list := []any{}
	for dec.More() {
		value, err := d.read(dec, at+"["+strconv.Itoa(len(list))+"]", depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, value)
	}
	_, err := dec.Token()
	return list, err
}

// fill puts a value into a field.
func (d *decoder) fill(v reflect.Value, value any, at string) {
	if value == nil {
		return
	}
	if v.Kind() == reflect.Pointer {
		target := reflect.New(v.Type().Elem())
		before := len(d.found)
		d.fill(target.Elem(), value, at)
		if len(d.found) == before {
			v.Set(target)
		}
		return
	}
	if v.CanAddr() {
		if done := d.fillUnit(v.Addr().Interface(), value, at); done {
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		d.fillStruct(v, value, at)
	case reflect.Slice:
		d.fillSlice(v, value, at)
	case reflect.Map:
		d.fillMap(v, value, at)
	default:
		d.fillScalar(v, value, at)
	}
}

// fillUnit fills types with a text form of their own.
func (d *decoder) fillUnit(target, value any, at string) bool {
	unit, ok := target.(encoding.TextUnmarshaler)
	if !ok {
		return false
	}
	var err error
	switch value := value.(type) {
	case string:
		err = unit.UnmarshalText([]byte(value))
	case json.Number:
		if n, ok := target.(numeric); ok {
			err = n.fromNumber(value)
			break
		}
		// The unit's own words say how it is written.
		if err = unit.UnmarshalText([]byte(value)); err == nil {
			err = errors.New("is a number, not a text")
		}
	default:
		err = fmt.Errorf("is %s, not a text", kindOf(value))
	}
	if err != nil {
		d.wrong(at, "%v", err)
	}
	return true
}

func (d *decoder) fillStruct(v reflect.Value, value any, at string) {
	o, ok := value.(object)
	if !ok {
		d.wrong(at, "is %s, not an object", kindOf(value))
		return
	}
	fields := fieldsOf(v.Type())
	for _, m := range o {
		index, known := fields[m.name]
		if !known {
			d.wrong(join(at, clip(m.name)), "is not known%s", suggestion(m.name, fields))
			continue
		}
		d.fill(v.Field(index), m.value, join(at, m.name))
	}
}

func fieldsOf(t reflect.Type) map[string]int {
	fields := make(map[string]int, t.NumField())
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if name != "" && name != "-" {
			fields[name] = i
		}
	}
	return fields
}

func (d *decoder) fillSlice(v reflect.Value, value any, at string) {
	list, ok := value.([]any)
	if !ok {
		d.wrong(at, "is %s, not a list", kindOf(value))
		return
	}
	out := reflect.MakeSlice(v.Type(), len(list), len(list))
	for i, item := range list {
		here := at + "[" + strconv.Itoa(i) + "]"
		if item == nil {
			d.wrong(here, "is null")
			continue
		}
		d.fill(out.Index(i), item, here)
	}
	v.Set(out)
}

func (d *decoder) fillMap(v reflect.Value, value any, at string) {
	o, ok := value.(object)
	if !ok {
		d.wrong(at, "is %s, not an object", kindOf(value))
		return
	}
	out := reflect.MakeMapWithSize(v.Type(), len(o))
	for _, m := range o {
		item := reflect.New(v.Type().Elem()).Elem()
		if m.value == nil {
			d.wrong(join(at, clip(m.name)), "is null")
			continue
		}
		d.fill(item, m.value, join(at, clip(m.name)))
		out.SetMapIndex(reflect.ValueOf(m.name).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

func (d *decoder) fillScalar(v reflect.Value, value any, at string) {
	switch v.Kind() {
	case reflect.String:
		if s, ok := value.(string); ok {
			v.SetString(s)
			return
		}
		d.wrong(at, "is %s, not a text", kindOf(value))
	case reflect.Bool:
		if b, ok := value.(bool); ok {
			v.SetBool(b)
			return
		}
		d.wrong(at, "is %s, not true or false", kindOf(value))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Int:
		d.fillNumber(v, value, at)
	default:
		panic("api: a request has a field of kind " + v.Kind().String())
	}
}

func (d *decoder) fillNumber(v reflect.Value, value any, at string) {
	n, ok := value.(json.Number)
	if !ok {
		d.wrong(at, "is %s, not a number", kindOf(value))
		return
	}
	bits := v.Type().Bits()
	if v.CanInt() {
		i, err := strconv.ParseInt(n.String(), 10, bits)
		if err == nil {
			v.SetInt(i)
			return
		}
	} else if u, err := strconv.ParseUint(n.String(), 10, bits); err == nil {
		v.SetUint(u)
		return
	}
	d.wrong(at, "%s is no whole number that fits here", clip(n.String()))
}

func kindOf(value any) string {
	switch value.(type) {
	case string:
		return "a text"
	case json.Number:
		return "a number"
	case bool:
		return "true or false"
	case object:
		return "an object"
	case []any:
		return "a list"
	}
	return "null"
}

// suggestion names the field that was probably meant.
func suggestion(name string, fields map[string]int) string {
	best, least := "", 3
	for known := range fields {
		if d := distance(name, known); d < least || d == least && known < best {
			best, least = known, d
		}
	}
	if least > 2 {
		return ""
	}
	return "; did you mean " + best + "?"
}

// distance is the number of letters by which two short words differ; far apart for long ones.
func distance(a, b string) int {
	if len(a) > forge.MaxName || len(b) > forge.MaxName {
		return forge.MaxName
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j+1]+1, row[j]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
