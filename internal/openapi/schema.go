package openapi

import (
	"encoding"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	rawMessage    = reflect.TypeFor[json.RawMessage]()
)

// ref is the schema of a type: a reference, where the type has a name of its own.
func (w *writer) ref(t reflect.Type) *yaml.Node {
	if t == nil {
		return nil
	}
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if text, ok := w.doc.Custom[t]; ok || t.Name() != "" && t.PkgPath() != "" && t.Kind() == reflect.Struct {
		name := schemaName(t)
		if other, known := w.types[name]; known && other != t {
			w.wrong("%v and %v are both called %s", other, t, name)
		}
		if _, known := w.schemas[name]; !known {
			w.types[name] = t
			w.schemas[name] = mapping() // a type may hold itself
			w.schemas[name] = w.named(t, text)
		}
		return reference("schemas", name)
	}
	return w.plain(t)
}

// named is the schema of a type with a name.
func (w *writer) named(t reflect.Type, custom string) *yaml.Node {
	about := w.doc.Comments.Type(t)
	if about == "" {
		w.wrong("nothing is said of the type %v", t)
	}
	if custom != "" {
		var doc yaml.Node
		if err := yaml.Unmarshal([]byte(custom), &doc); err != nil || len(doc.Content) != 1 {
			w.wrong("the description of %v is no schema: %v", t, err)
			return mapping()
		}
		set(doc.Content[0], "description", about)
		return doc.Content[0]
	}
	if t.Implements(jsonMarshaler) || t.Implements(textMarshaler) || reflect.PointerTo(t).Implements(jsonMarshaler) {
		w.wrong("%v writes its JSON itself, and nobody says how", t)
	}
	properties, required := mapping(), list()
	w.fields(t, properties, required)
	out := mapping("type", "object", "description", about, "properties", properties)
	if len(required.Content) > 0 {
		set(out, "required", required)
	}
	return out
}

// fields adds the fields of a struct, and those of what is embedded in it.
func (w *writer) fields(t reflect.Type, properties, required *yaml.Node) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, hasTag := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case name == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && !hasTag:
			w.fields(f.Type, properties, required)
			continue
		case name == "":
			w.wrong("field %s of %v has no name in JSON", f.Name, t)
			continue
		}
		schema := w.ref(f.Type)
		if about := w.doc.Comments.Field(t, f.Name); about != "" {
			set(schema, "description", about) // beside a $ref too, which 3.1 allows
		}
		set(properties, name, schema)
		if options := strings.Split(options, ","); !slices.Contains(options, "omitempty") && !slices.Contains(options, "omitzero") {
			required.Content = append(required.Content, scalar(name))
		}
	}
}

// plain is the schema of a type without one of its own.
func (w *writer) plain(t reflect.Type) *yaml.Node {
	switch {
	case t == rawMessage || t.Kind() == reflect.Interface:
		return mapping()
	case t.Kind() != reflect.Struct && (t.Implements(jsonMarshaler) || t.Implements(textMarshaler)):
		w.wrong("%v writes its JSON itself, and nobody says how", t)
	}
	switch t.Kind() {
	case reflect.Bool:
		return mapping("type", "boolean")
	case reflect.String:
		return mapping("type", "string")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return mapping("type", "integer")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return mapping("type", "integer", "minimum", 0)
	case reflect.Float32, reflect.Float64:
		return mapping("type", "number")
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 && t.Elem().PkgPath() == "" {
			return mapping("type", "string", "contentEncoding", "base64")
		}
		return mapping("type", "array", "items", w.ref(t.Elem()))
	case reflect.Map:
		return mapping("type", "object", "additionalProperties", w.ref(t.Elem()))
	}
	w.wrong("%v cannot be described", t)
	return mapping()
}

// schemaName is the name of a type: that of Go, and RunList for List[Run].
func schemaName(t reflect.Type) string {
	outer, inner, generic := strings.Cut(t.Name(), "[")
	if !generic {
		return outer
	}
	inner = strings.TrimSuffix(inner, "]")
	return inner[strings.LastIndexAny(inner, "./")+1:] + outer
}

func (w *writer) sorted() *yaml.Node {
	out := mapping()
	for _, name := range slices.Sorted(maps.Keys(w.schemas)) {
		set(out, name, w.schemas[name])
	}
	return out
}
