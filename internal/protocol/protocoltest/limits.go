package protocoltest

import (
	"errors"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/postcard"
)

// checkLimits takes each list, text and byte string of a type to its limit, which must be accepted, and one past it,
// which must be refused by the encoder and, written by an encoder without that limit, by the decoder.
func checkLimits(t *testing.T, samples []Sample) {
	t.Helper()
	done := map[string]bool{}
	for _, s := range samples {
		v := reflect.ValueOf(s.Message).Elem()
		eachLimit(v, "", nil, func(path string, _ reflect.Value, most int) {
			if done[path] {
				return
			}
			done[path] = true
			checkLimit(t, v, path, most)
		})
	}
	for _, path := range limitsOf(reflect.TypeOf(samples[0].Message).Elem(), "", nil) {
		if !done[path] {
			t.Errorf("no sample has anything in %s", path)
		}
	}
}

func checkLimit(t *testing.T, v reflect.Value, path string, most int) {
	t.Helper()
	for n, want := range map[int]error{most: nil, most + 1: postcard.ErrLimit} {
		loose := reflect.New(loosen(v.Type())).Elem()
		copyInto(loose, v)
		grow(loose, path, n)
		bytes, err := postcard.Marshal(loose.Interface())
		if err != nil {
			t.Fatalf("%s with %d: %v", path, n, err)
		}
		back := reflect.New(v.Type())
		if err := postcard.Unmarshal(bytes, back.Interface()); !errors.Is(err, want) {
			t.Errorf("decode %s with %d of at most %d: %v, want %v", path, n, most, err, want)
		}
		copyInto(back.Elem(), loose)
		if _, err := postcard.Marshal(back.Interface()); !errors.Is(err, want) {
			t.Errorf("encode %s with %d of at most %d: %v, want %v", path, n, most, err, want)
		}
	}
}

// grow repeats the last item of the collections at a path until there are n.
func grow(v reflect.Value, path string, n int) {
	grown := false
	eachLimit(v, "", nil, func(at string, c reflect.Value, _ int) {
		if at != path || grown {
			return
		}
		grown = true
		if c.Kind() == reflect.String {
			c.SetString(strings.Repeat("x", n))
			return
		}
		last := reflect.Zero(c.Type().Elem())
		if c.Len() > 0 {
			last = c.Index(c.Len() - 1)
		}
		list := reflect.MakeSlice(c.Type(), n, n)
		for i := range n {
			list.Index(i).Set(last)
		}
		c.Set(list)
	})
}

// eachLimit calls f for each collection in v that has something in it, with the limit of its tag.
func eachLimit(v reflect.Value, path string, limits []int, f func(path string, v reflect.Value, most int)) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			eachLimit(v.Elem(), path, limits, f)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			eachLimit(v.Field(i), path+"."+field.Name, tagLimits(field), f)
		}
	case reflect.String, reflect.Slice:
		if v.Len() == 0 {
			return
		}
		f(path, v, limits[0])
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				eachLimit(v.Index(i), path+"[]", limits[1:], f)
			}
		}
	}
}

// limitsOf lists the paths of all collections of a type.
func limitsOf(t reflect.Type, path string, limits []int) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return limitsOf(t.Elem(), path, limits)
	case reflect.Struct:
		var paths []string
		for i := range t.NumField() {
			paths = append(paths, limitsOf(t.Field(i).Type, path+"."+t.Field(i).Name, tagLimits(t.Field(i)))...)
		}
		return paths
	case reflect.String:
		return []string{path}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return []string{path}
		}
		return append([]string{path}, limitsOf(t.Elem(), path+"[]", limits)...)
	}
	return nil
}

var limitClause = regexp.MustCompile(`(max|elem)=(\d+)`)

func tagLimits(field reflect.StructField) []int {
	var limits []int
	for _, clause := range limitClause.FindAllStringSubmatch(field.Tag.Get("postcard"), -1) {
		n, _ := strconv.Atoi(clause[2])
		limits = append(limits, n)
	}
	return limits
}

// loosen returns the type with every limit one higher, all else being the same on the wire.
func loosen(t reflect.Type) reflect.Type {
	switch t.Kind() {
	case reflect.Pointer:
		return reflect.PointerTo(loosen(t.Elem()))
	case reflect.Slice:
		return reflect.SliceOf(loosen(t.Elem()))
	case reflect.Struct:
		if t.NumField() == 0 {
			return t
		}
		fields := make([]reflect.StructField, t.NumField())
		for i := range fields {
			f := t.Field(i)
			fields[i] = reflect.StructField{Name: f.Name, Type: loosen(f.Type), Tag: loosenTag(f.Tag)}
		}
		return reflect.StructOf(fields)
	}
	return t
}

func loosenTag(tag reflect.StructTag) reflect.StructTag {
	return reflect.StructTag(limitClause.ReplaceAllStringFunc(string(tag), func(clause string) string {
		name, number, _ := strings.Cut(clause, "=")
		n, _ := strconv.Atoi(number)
		return name + "=" + strconv.Itoa(n+1)
	}))
}

// copyInto copies between a type and its loosened form.
func copyInto(dst, src reflect.Value) {
	switch src.Kind() {
	case reflect.Pointer:
		if src.IsNil() {
			dst.SetZero()
			return
		}
		dst.Set(reflect.New(dst.Type().Elem()))
		copyInto(dst.Elem(), src.Elem())
	case reflect.Struct:
		for i := range src.NumField() {
			copyInto(dst.Field(i), src.Field(i))
		}
	case reflect.Slice:
		dst.Set(reflect.MakeSlice(dst.Type(), src.Len(), src.Len()))
		for i := range src.Len() {
			copyInto(dst.Index(i), src.Index(i))
		}
	default:
		dst.Set(src.Convert(dst.Type()))
	}
}

// headSize is the most that an envelope adds to a payload.
const headSize = protocol.MaxEnvelope
