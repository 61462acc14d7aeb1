package protocoltest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/inspect"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

// Root is the module's root as tests of this package see it.
const Root = "../../.."

// VectorDir is where the vectors of the current version stand, below Root.
func VectorDir() string { return filepath.Join("protocols", "vectors", protocol.Current.String()) }

// VectorFileName is the file of a type's vectors: 0201-lease-offer.json.
func VectorFileName(info protocol.Info) string {
	return fmt.Sprintf("%04x-%s.json", uint16(info.ID), kebab(info.Name))
}

// Files of a vector folder that are not about one type.
const (
	HeadFileName        = "stream-headers.json"
	FingerprintFileName = "fingerprints.tsv"
)

func kebab(name string) string {
	var out strings.Builder
	for i, r := range name {
		if 'A' <= r && r <= 'Z' {
			if i > 0 {
				out.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		out.WriteRune(r)
	}
	return out.String()
}

// NewVectors makes the vectors of a type from its samples.
func NewVectors(info protocol.Info) (inspect.VectorFile, error) {
	f := inspect.VectorFile{Type: fmt.Sprintf("%04x", uint16(info.ID)), Name: info.Name, Schema: info.Schema}
	for _, s := range Samples(info.ID) {
		raw, err := s.Frame()
		if err != nil {
			return f, err
		}
		node, err := inspect.Frame(raw)
		if err != nil {
			return f, err
		}
		v, err := inspect.NewVector(kebab(info.Name)+"/"+s.Name, s.About, raw, node)
		if err != nil {
			return f, err
		}
		f.Vectors = append(f.Vectors, v)
	}
	return f, nil
}

// NewHeadVectors makes the vectors of stream headers.
func NewHeadVectors() (inspect.VectorFile, error) {
	f := inspect.VectorFile{Name: "stream headers"}
	for _, s := range StreamHeads() {
		raw, err := protocol.AppendStreamHeader(nil, s.Kind, s.Head)
		if err != nil {
			return f, err
		}
		var node inspect.Node
		if err := inspect.Stream(bytes.NewReader(raw), func(n inspect.Node) { node = n }); err != nil {
			return f, err
		}
		v, err := inspect.NewVector("stream-header/"+s.Name, "the header of a stream of kind "+s.Kind.String(), raw, node)
		if err != nil {
			return f, err
		}
		f.Vectors = append(f.Vectors, v)
	}
	return f, nil
}

// EncodeVectors writes a file as it is committed: one line for each key, and what a vector means indented below it.
func EncodeVectors(f inspect.VectorFile) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	err := encoder.Encode(f)
	return out.Bytes(), err
}

// Fingerprints describes the wire struct of every tag and stream header: one line each, with the digest that must not
// change once it is released and the description that shows what did.
func Fingerprints() (string, error) {
	var out strings.Builder
	out.WriteString("# Wire structs: type, schema, name, digest of the description, description.\n")
	out.WriteString("# A changed line is a changed encoding. After the first release only lines for new schemas are added.\n")
	for _, tag := range wire.Tags() {
		w, _ := wire.New(tag)
		shape, err := protocol.Fingerprint(w)
		if err != nil {
			return "", err
		}
		info, _ := protocol.LookupTag(tag)
		fmt.Fprintf(&out, "%04x\t%d\t%s\t%v\t%s\n", uint16(tag.Type), tag.Schema, info.Name, digest.WireSchema.Sum([]byte(shape)), shape)
	}
	for _, info := range protocol.StreamKinds() {
		head, ok := wire.NewStreamHead(info.Kind)
		if !ok {
			continue
		}
		shape, err := protocol.HeadFingerprint(head)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&out, "stream %d\t%d\t%s\t%v\t%s\n", info.Kind, info.Schema, info.Name, digest.WireSchema.Sum([]byte(shape)), shape)
	}
	shape, err := protocol.EnvelopeFingerprint()
	fmt.Fprintf(&out, "envelope\t1\tEnvelope\t%v\t%s\n", digest.WireSchema.Sum([]byte(shape)), shape)
	return out.String(), err
}

// VectorFiles returns the vector files below protocols/vectors of one version, by name.
func VectorFiles(dir string) (map[string]inspect.VectorFile, error) {
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	files := map[string]inspect.VectorFile{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		f, err := inspect.ParseVectors(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		files[filepath.Base(name)] = f
	}
	return files, nil
}

// EnumerationFileName lists what every number means.
const EnumerationFileName = "enumerations.tsv"

// Enumerations lists the numbers of every enumeration that is found in a wire struct, with their names.
func Enumerations() string {
	found := map[string]reflect.Type{}
	for _, tag := range wire.Tags() {
		w, _ := wire.New(tag)
		findEnums(reflect.TypeOf(w).Elem(), found)
	}
	for _, info := range protocol.StreamKinds() {
		if head, ok := wire.NewStreamHead(info.Kind); ok {
			findEnums(reflect.TypeOf(head).Elem(), found)
		}
	}
	var out strings.Builder
	out.WriteString("# Enumerations: wire type, number, name. Lines are only ever added.\n")
	for _, name := range slices.Sorted(maps.Keys(found)) {
		for n := uint64(1); n < 256; n++ {
			v := reflect.New(found[name]).Elem()
			v.SetUint(n)
			if text := fmt.Sprint(v.Interface()); enumNamed(text) {
				fmt.Fprintf(&out, "%s\t%d\t%s\n", name, n, text)
			}
		}
	}
	return out.String()
}

// enumNamed reports whether a number has a name of its own.
func enumNamed(text string) bool {
	return !strings.HasPrefix(text, "unknown(") && !strings.HasPrefix(text, "feature ")
}

func findEnums(t reflect.Type, found map[string]reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		findEnums(t.Elem(), found)
	case reflect.Struct:
		for i := range t.NumField() {
			findEnums(t.Field(i).Type, found)
		}
	case reflect.Uint8, reflect.Uint16:
		if t.Implements(reflect.TypeFor[fmt.Stringer]()) {
			found[t.String()] = t
		}
	}
}
