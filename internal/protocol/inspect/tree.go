package inspect

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/protocol"
)

// Shape says what a node is.
type Shape uint8

// The shapes.
const (
	Text   Shape = 1 // a value that JSON writes as a string
	Plain  Shape = 2 // a number or a bool
	None   Shape = 3 // an option without a value
	Struct Shape = 4 // Kids by name
	List   Shape = 5 // Kids in order
)

// Node is one thing with its name.
type Node struct {
	Name  string
	Shape Shape
	Value string // of Text and Plain
	Kids  []Node // of Struct and List
}

// shownBytes is how much of a byte string is shown.
const shownBytes = 64

// Tree returns the tree of a wire struct.
func Tree(name string, v any) Node { return tree(name, reflect.Indirect(reflect.ValueOf(v))) }

func tree(name string, v reflect.Value) Node {
	if _, secret := v.Interface().(protocol.SecretV1); secret {
		return Node{Name: name, Shape: Text, Value: fmt.Sprint(v.Interface())}
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return Node{Name: name, Shape: None}
		}
		return tree(name, v.Elem())
	case reflect.Struct:
		return structure(name, v)
	case reflect.Slice:
		if v.Type().Elem() == reflect.TypeFor[byte]() {
			return Node{Name: name, Shape: Text, Value: shortHex(v.Bytes())}
		}
		list := Node{Name: name, Shape: List}
		for i := range v.Len() {
			list.Kids = append(list.Kids, tree("", v.Index(i)))
		}
		return list
	case reflect.Array:
		raw := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(raw), v)
		return Node{Name: name, Shape: Text, Value: identity(raw)}
	case reflect.String:
		return Node{Name: name, Shape: Text, Value: v.String()}
	}
	return scalar(name, v)
}

// structure shows an enum as its one variant.
func structure(name string, v reflect.Value) Node {
	n := Node{Name: name, Shape: Struct}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		variant := strings.HasPrefix(field.Tag.Get("postcard"), "=")
		if variant && v.Field(i).IsNil() {
			continue
		}
		n.Kids = append(n.Kids, tree(field.Name, v.Field(i)))
	}
	return n
}

// scalar shows the number of an enumeration with its name.
func scalar(name string, v reflect.Value) Node {
	text := fmt.Sprint(v.Interface())
	if named, ok := v.Interface().(fmt.Stringer); ok && v.CanUint() {
		return Node{Name: name, Shape: Text, Value: named.String() + " (" + strconv.FormatUint(v.Uint(), 10) + ")"}
	}
	return Node{Name: name, Shape: Plain, Value: text}
}

// identity writes ids and digests as people know them.
func identity(raw []byte) string {
	switch len(raw) {
	case len(forge.ULID{}):
		return forge.ULID(raw).String()
	case digest.Size:
		return digest.Digest(raw).String()
	}
	return hex.EncodeToString(raw)
}

func shortHex(b []byte) string {
	if len(b) <= shownBytes {
		return hex.EncodeToString(b)
	}
	return fmt.Sprintf("%s… (%d bytes)", hex.EncodeToString(b[:shownBytes]), len(b))
}
