package wire_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/protocol/wire"
)

const home = "github.com/forgeyard/forgeyard/internal/protocol"

// TestAWireStructHoldsNothingButTypesOfTheWire: no type of the domain, of an API or of anybody else can change a byte.
func TestAWireStructHoldsNothingButTypesOfTheWire(t *testing.T) {
	for _, tag := range wire.Tags() {
		w, _ := wire.New(tag)
		checkShape(t, reflect.TypeOf(w).Elem(), tag.String())
	}
	for _, info := range protocol.StreamKinds() {
		if head, ok := wire.NewStreamHead(info.Kind); ok {
			checkShape(t, reflect.TypeOf(head).Elem(), info.Name)
		}
	}
	checkShape(t, reflect.TypeFor[protocol.EnvelopeV1](), "envelope")
}

func checkShape(t *testing.T, typ reflect.Type, path string) {
	t.Helper()
	if pkg := typ.PkgPath(); pkg != "" && pkg != home && !strings.HasPrefix(pkg, home+"/") {
		t.Errorf("%s is a %v", path, typ)
		return
	}
	switch typ.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		checkShape(t, typ.Elem(), path+"[]")
	case reflect.Struct:
		for i := range typ.NumField() {
			checkShape(t, typ.Field(i).Type, path+"."+typ.Field(i).Name)
		}
	case reflect.Float32, reflect.Float64, reflect.Map, reflect.Int, reflect.Uint, reflect.Interface:
		t.Errorf("%s is a %v, which no wire struct may hold", path, typ.Kind())
	}
}

// TestTheWireIsPostcardAndNothingElse: no package of messages imports another encoding.
func TestTheWireIsPostcardAndNothingElse(t *testing.T) {
	foreign := []string{"encoding/json", "encoding/xml", "encoding/gob", "google.golang.org/protobuf", "google.golang.org/grpc"}
	found := 0
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") ||
			strings.Contains(path, "protocoltest") || strings.Contains(path, "inspect") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		for _, spec := range file.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			if slices.ContainsFunc(foreign, func(f string) bool { return name == f || strings.HasPrefix(name, f+"/") }) {
				t.Errorf("%s imports %s", path, name)
			}
			if strings.HasSuffix(name, "/postcard") {
				found++
			}
		}
		return nil
	})
	if err != nil || found == 0 {
		t.Errorf("%v, %d files that use Postcard", err, found)
	}
}

// TestOnlyTheOfferBringsAnythingToExecute looks into every message to an agent for room that a command could hide in.
func TestOnlyTheOfferBringsAnythingToExecute(t *testing.T) {
	for _, info := range protocol.Registry() {
		if info.To&protocol.ToPeer == 0 {
			continue
		}
		w, _ := wire.New(protocol.Tag{Type: info.ID, Schema: info.Schema})
		for _, path := range free(reflect.TypeOf(w).Elem(), "") {
			if !slices.Contains(mayHoldText[info.ID], path) {
				t.Errorf("%s%s is room for anything, in a message to an agent", info.Name, path)
			}
		}
	}
}

// TestNoMessageHoldsAnObject: the bytes of objects follow a message, outside it, and nothing that is framed is large.
func TestNoMessageHoldsAnObject(t *testing.T) {
	for _, info := range protocol.Registry() {
		w, _ := wire.New(protocol.Tag{Type: info.ID, Schema: info.Schema})
		if paths := free(reflect.TypeOf(w).Elem(), ""); info.Family == protocol.FamilyCAS && len(paths) > 0 {
			t.Errorf("%s has room for bytes: %v", info.Name, paths)
		}
		if info.Max > 256<<10 {
			t.Errorf("%s may have %d bytes", info.Name, info.Max)
		}
	}
}

// mayHoldText lists the texts and bytes in messages to an agent, with what they are.
var mayHoldText = map[protocol.TypeID][]string{
	protocol.TypeHelloAck:          {".Software"},                                // shown
	protocol.TypeEnrollAccepted:    {".Certificate.Chain", ".Certificate.Roots"}, // certificates
	protocol.TypeCertificateIssued: {".Certificate.Chain", ".Certificate.Roots"},
	protocol.TypeLeaseOffer:        {".Spec.Inline"},          // the specification, whose digest is its id
	protocol.TypeSecretMaterial:    {".Name", ".Value.Plain"}, // an answer to a question for that name
	protocol.TypeGoAway:            {".Endpoints"},            // where to connect
	protocol.TypeError:             {".Text"},                 // shown
	protocol.TypeProbeRequest:      {".Checks"},               // numbers of checks
}

func free(t reflect.Type, path string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return free(t.Elem(), path)
	case reflect.String:
		return []string{path}
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return []string{path}
		}
		return free(t.Elem(), path)
	case reflect.Struct:
		var paths []string
		for i := range t.NumField() {
			paths = append(paths, free(t.Field(i).Type, path+"."+t.Field(i).Name)...)
		}
		return paths
	}
	return nil
}
