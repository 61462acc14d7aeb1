package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// A key of settings is the path of a field: the names in the tags "key", joined by dots.
type leaf struct {
	key  string
	safe bool // may change while the program runs
	at   reflect.Value
}

// leaves lists the fields of settings that hold a value, in their order. The structs are few and flat, so recursion is
// bounded by our own types.
func leaves(v reflect.Value, prefix string) []leaf {
	var all []leaf
	for i := range v.NumField() {
		field := v.Type().Field(i)
		key := prefix + field.Tag.Get("key")
		if section(field.Type) {
			all = append(all, leaves(v.Field(i), key+".")...)
			continue
		}
		all = append(all, leaf{key: key, safe: field.Tag.Get("reload") == "safe", at: v.Field(i)})
	}
	return all
}

// section reports whether a type is a group of keys and not a value.
func section(t reflect.Type) bool { return t.Kind() == reflect.Struct }

// A decoder fills settings from one source after the other and gathers what is wrong.
type decoder struct {
	root    reflect.Value
	leaves  []leaf
	sources map[string]string // key → where its value came from
	found   Problems
}

func newDecoder(root reflect.Value) *decoder {
	return &decoder{root: root, leaves: leaves(root, ""), sources: map[string]string{}}
}

// source says where the value of a key, or of any key below it, came from.
func (d *decoder) source(key string) string {
	list, _, _ := strings.Cut(key, "[")
	for _, k := range []string{key, list} {
		if s, ok := d.sources[k]; ok {
			return s
		}
	}
	for _, l := range d.leaves {
		if s, ok := d.sources[l.key]; ok && strings.HasPrefix(l.key, key) {
			return s
		}
	}
	return "settings"
}

// file reads a YAML document over the settings.
func (d *decoder) file(name string, data []byte) {
	var doc, more yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(data), yaml.WithUniqueKeys(false))
	if err == nil {
		err = loader.Load(&doc)
	}
	switch {
	case errors.Is(err, io.EOF) || err == nil && empty(&doc):
		return // nothing but comments changes nothing
	case err != nil:
		d.syntax(name, err)
		return
	}
	if err := loader.Load(&more); !errors.Is(err, io.EOF) {
		d.wrong(name, "", "more than one document, or trouble behind the first; settings are one")
		return
	}
	d.section(name, doc.Content[0], d.root, "")
}

func empty(doc *yaml.Node) bool {
	return len(doc.Content) == 0 || doc.Content[0].ShortTag() == "!!null"
}

func (d *decoder) syntax(name string, err error) {
	var load *yaml.LoadError
	if errors.As(err, &load) {
		d.wrong(fmt.Sprintf("%s:%d:%d", name, load.Mark.Line, load.Mark.Column), "", "not YAML: %s", clip(load.Message))
		return
	}
	d.wrong(name, "", "not YAML: %s", clip(err.Error()))
}

// section reads a mapping over a struct.
func (d *decoder) section(file string, node *yaml.Node, into reflect.Value, prefix string) {
	if !d.plain(file, node, strings.TrimSuffix(prefix, ".")) {
		return
	}
	if node.Kind != yaml.MappingNode {
		d.wrong(place(file, node), strings.TrimSuffix(prefix, "."), "must hold keys, not %s", kind(node))
		return
	}
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if !d.plain(file, key, prefix+clip(key.Value)) {
			continue
		}
		if first := seen[key.Value]; first != nil {
			d.wrong(place(file, key), prefix+clip(key.Value), "is there twice, first on line %d", first.Line)
			continue
		}
		seen[key.Value] = key
		d.field(file, key, value, into, prefix)
	}
}

// field reads the value of one key.
func (d *decoder) field(file string, key, value *yaml.Node, into reflect.Value, prefix string) {
	var names []string
	for i := range into.NumField() {
		name := into.Type().Field(i).Tag.Get("key")
		if names = append(names, name); name != key.Value || key.Kind != yaml.ScalarNode {
			continue
		}
		if section(into.Field(i).Type()) {
			d.section(file, value, into.Field(i), prefix+name+".")
		} else {
			d.value(file, value, into.Field(i), prefix+name)
		}
		return
	}
	d.wrong(place(file, key), prefix+clip(key.Value), "there is no such setting%s", cmp.Or(didYouMean(key.Value, names), inSection(key.Value, d.keys())))
}

// value reads a scalar or a list.
func (d *decoder) value(file string, node *yaml.Node, into reflect.Value, key string) {
	if !d.plain(file, node, key) {
		return
	}
	at := place(file, node)
	d.sources[key] = at
	if into.Kind() == reflect.Slice {
		d.list(file, node, into, key)
		return
	}
	switch {
	case node.Kind != yaml.ScalarNode:
		d.wrong(at, key, "must be one value, not %s", kind(node))
	case node.ShortTag() == "!!null":
		d.wrong(at, key, "has no value; leave the key out to keep the default, or write \"\" for empty")
	default:
		if err := setText(into, node.Value); err != nil {
			d.wrong(at, key, "%v", err)
		}
	}
}

func (d *decoder) list(file string, node *yaml.Node, into reflect.Value, key string) {
	if node.Kind != yaml.SequenceNode {
		d.wrong(place(file, node), key, "must be a list, as in [a, b], not %s", kind(node))
		return
	}
	if len(node.Content) > MaxListItems {
		d.wrong(place(file, node), key, "has %d items, more than %d", len(node.Content), MaxListItems)
		return
	}
	items := reflect.MakeSlice(into.Type(), len(node.Content), len(node.Content))
	for i, item := range node.Content {
		d.value(file, item, items.Index(i), fmt.Sprintf("%s[%d]", key, i))
	}
	into.Set(items)
}

// plain reports whether a node uses none of the parts of YAML that settings do without.
func (d *decoder) plain(file string, node *yaml.Node, key string) bool {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		d.wrong(place(file, node), key, "anchors and aliases are not used here; write the value out")
	case node.Style&yaml.TaggedStyle != 0:
		d.wrong(place(file, node), key, "tags are not used here; write the plain value")
	default:
		return true
	}
	return false
}

func place(file string, node *yaml.Node) string {
	return fmt.Sprintf("%s:%d:%d", file, node.Line, node.Column)
}

func kind(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "keys"
	case yaml.SequenceNode:
		return "a list"
	}
	if node.ShortTag() == "!!null" {
		return "nothing"
	}
	return "one value"
}

// set stores a text under a key, from a flag.
func (d *decoder) set(source, key, text string) {
	i := slices.IndexFunc(d.leaves, func(l leaf) bool { return l.key == key })
	if i < 0 {
		d.wrong(source, clip(key), "there is no such setting%s", cmp.Or(didYouMean(key, d.keys()), inSection(key, d.keys())))
		return
	}
	d.text(source, d.leaves[i], text)
}

// text stores a text in a leaf. Items of a list are separated by commas.
func (d *decoder) text(source string, l leaf, text string) {
	d.sources[l.key] = source
	if l.at.Kind() != reflect.Slice {
		if err := setText(l.at, text); err != nil {
			d.wrong(source, l.key, "%v", err)
		}
		return
	}
	var parts []string
	if text != "" {
		parts = strings.Split(text, ",")
	}
	if len(parts) > MaxListItems {
		d.wrong(source, l.key, "has %d items, more than %d", len(parts), MaxListItems)
		return
	}
	items := reflect.MakeSlice(l.at.Type(), len(parts), len(parts))
	for i, part := range parts {
		if err := setText(items.Index(i), strings.TrimSpace(part)); err != nil {
			d.wrong(source, fmt.Sprintf("%s[%d]", l.key, i), "%v", err)
		}
	}
	l.at.Set(items)
}

// environ reads the variables that begin with a prefix. An empty one is as good as none.
func (d *decoder) environ(prefix string, environ []string) {
	for _, variable := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(variable, "=")
		if !strings.HasPrefix(name, prefix) || text == "" {
			continue
		}
		i := slices.IndexFunc(d.leaves, func(l leaf) bool { return variableName(prefix, l.key) == name })
		if i < 0 {
			var names []string
			for _, l := range d.leaves {
				names = append(names, variableName(prefix, l.key))
			}
			d.wrong(clip(name), "", "there is no such setting%s", didYouMean(name, names))
			continue
		}
		d.text(name, d.leaves[i], text)
	}
}

// variableName is the environment variable of a key.
func variableName(prefix, key string) string {
	return prefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func (d *decoder) keys() []string {
	all := make([]string, len(d.leaves))
	for i, l := range d.leaves {
		all[i] = l.key
	}
	return all
}
