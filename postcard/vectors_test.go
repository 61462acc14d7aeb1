package postcard

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// Every file of testdata in the format of the reference's vectors is run; one from elsewhere with
//
//	go test ./postcard -run TestReferenceVectors -args -vectors=/path/to/file.json
var vectorFile = flag.String("vectors", "", "run this vector file as well")

type vectors struct {
	Types    map[string]string
	Valid    []vector
	Invalid  []vector
	Accepted []vector
}

type vector struct {
	ID, Type, Hex, Bits    string
	Value, Decoded         json.RawMessage
	Error, Kind, Canonical string
	Rest                   string
}

// deep lets vectors nest as the reference does, which knows no limit.
var (
	strict  = Options{MaxDepth: maxDepth}
	lenient = Options{MaxDepth: maxDepth, Lenient: true}
)

func vectorFiles(t testing.TB) []string {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	if *vectorFile != "" {
		files = append(files, *vectorFile)
	}
	return files
}

func loadVectors(t testing.TB, file string) *vectors {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	v := &vectors{}
	if err := json.Unmarshal(text, v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestReferenceVectorsHoldInBothDirections(t *testing.T) {
	for _, file := range vectorFiles(t) {
		v := loadVectors(t, file)
		run := func(list string, rows []vector, check func(*testing.T, vector, *Type, []byte)) {
			for _, row := range rows {
				t.Run(list+"/"+row.ID, func(t *testing.T) {
					typ, err := ParseType(row.Type, v.Types)
					if err != nil {
						t.Fatalf("type %s: %v", row.Type, err)
					}
					check(t, row, typ, unhex(t, row.Hex))
				})
			}
			t.Logf("%s: %d %s", file, len(rows), list)
		}
		run("valid", v.Valid, checkValid)
		run("invalid", v.Invalid, checkInvalid)
		run("accepted", v.Accepted, checkAccepted)
	}
}

func checkValid(t *testing.T, row vector, typ *Type, wire []byte) {
	value := fromText(t, typ, row.Value)
	encoded, err := strict.Marshal(Value{typ, value})
	if err != nil || !bytes.Equal(encoded, wire) {
		t.Fatalf("encoded as %x, want %x (%v)", encoded, wire, err)
	}
	for name, mode := range map[string]Options{"strict": strict, "lenient": lenient} {
		got := Value{Type: typ}
		if err := mode.Unmarshal(wire, &got); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		checkText(t, typ, got.V, row.Value)
		checkBits(t, got.V, row.Bits)
		rest, err := mode.Take(append(wire[:len(wire):len(wire)], 0xa5), &Value{Type: typ})
		if err != nil || !bytes.Equal(rest, []byte{0xa5}) {
			t.Fatalf("%s: rest %x, %v", name, rest, err)
		}
	}
}

// errorsOf maps the reference's errors to ours.
var errorsOf = map[string]error{
	"DeserializeUnexpectedEnd": ErrTruncated,
	"DeserializeBadVarint":     ErrVarint,
	"DeserializeBadUtf8":       ErrUTF8,
	"DeserializeBadChar":       ErrChar,
	"DeserializeBadOption":     ErrOption,
	"DeserializeBadBool":       ErrBool,
	"SerdeDeCustom":            ErrDiscriminant,
}

func checkInvalid(t *testing.T, row vector, typ *Type, wire []byte) {
	for name, mode := range map[string]Options{"strict": strict, "lenient": lenient} {
		if err := mode.Unmarshal(wire, &Value{Type: typ}); err == nil {
			t.Errorf("%s: Unmarshal took it", name)
		}
		if rest, err := mode.Take(wire, &Value{Type: typ}); err == nil || rest != nil {
			t.Errorf("%s: Take took it and left %x", name, rest)
		}
	}
	// A count that the input cannot hold is refused before the items are read; the reference
	// reads them and may meet another fault first.
	err := lenient.Unmarshal(wire, &Value{Type: typ})
	if want := errorsOf[row.Error]; want != nil && !errors.Is(err, want) && !errors.Is(err, ErrTruncated) {
		t.Errorf("got %v, the reference says %s", err, row.Error)
	}
}

func checkAccepted(t *testing.T, row vector, typ *Type, wire []byte) {
	got := Value{Type: typ}
	if err := lenient.Unmarshal(wire, &got); err != nil {
		t.Fatal(err)
	}
	checkText(t, typ, got.V, row.Decoded)
	rest, err := lenient.Take(wire, &got)
	if err != nil || !bytes.Equal(rest, unhex(t, row.Rest)) {
		t.Errorf("rest is %x, want %s (%v)", rest, row.Rest, err)
	}
	for _, value := range []any{got.V, fromText(t, typ, row.Decoded)} {
		encoded, err := strict.Marshal(Value{typ, value})
		if err != nil || !bytes.Equal(encoded, unhex(t, row.Canonical)) {
			t.Errorf("encoded as %x, want %s (%v)", encoded, row.Canonical, err)
		}
	}
	checkStrictRefuses(t, row, typ, wire)
}

func checkStrictRefuses(t *testing.T, row vector, typ *Type, wire []byte) {
	err := strict.Unmarshal(wire, &Value{Type: typ})
	if err == nil {
		t.Fatal("the strict decoder took it")
	}
	rest, takeErr := strict.Take(wire, &Value{Type: typ})
	if row.Kind == "trailing" {
		if !errors.Is(err, ErrTrailing) || takeErr != nil || !bytes.Equal(rest, unhex(t, row.Rest)) {
			t.Errorf("strict: %v; rest %x, %v", err, rest, takeErr)
		}
		return
	}
	for _, err := range []error{err, takeErr} {
		if !errors.Is(err, ErrNotMinimal) && !errors.Is(err, ErrChar) && !errors.Is(err, ErrMapKey) {
			t.Errorf("strict: %v", err)
		}
	}
}

func TestEveryPrefixOfAVectorIsRefused(t *testing.T) {
	for _, file := range vectorFiles(t) {
		v := loadVectors(t, file)
		for _, row := range v.Valid {
			typ, err := ParseType(row.Type, v.Types)
			if err != nil {
				t.Fatal(err)
			}
			wire := unhex(t, row.Hex)
			for n := range wire {
				if n > 600 && n < len(wire)-600 {
					continue
				}
				for _, mode := range []Options{strict, lenient} {
					if err := mode.Unmarshal(wire[:n], &Value{Type: typ}); !errors.Is(err, ErrTruncated) {
						t.Fatalf("%s: first %d of %d bytes: %v", row.ID, n, len(wire), err)
					}
				}
			}
		}
	}
}

func TestSchemaOfATextTypeParsesToTheSameType(t *testing.T) {
	for _, file := range vectorFiles(t) {
		v := loadVectors(t, file)
		for _, row := range v.Valid {
			typ, err := ParseType(row.Type, v.Types)
			if err != nil {
				t.Fatal(err)
			}
			again, err := ParseType(typ.String(), nil)
			if err != nil || again.String() != typ.String() {
				t.Fatalf("%s: %q became %q (%v)", row.ID, typ, again, err)
			}
			if err := strict.Unmarshal(unhex(t, row.Hex), &Value{Type: again}); err != nil {
				t.Errorf("%s: %v", row.ID, err)
			}
		}
	}
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func checkText(t *testing.T, typ *Type, got any, want json.RawMessage) {
	t.Helper()
	text, err := toText(typ.plan.root, got)
	if err != nil {
		t.Fatal(err)
	}
	if wanted := plainJSON(t, want); !reflect.DeepEqual(text, wanted) {
		t.Errorf("decoded %v, want %v", text, wanted)
	}
}

func checkBits(t *testing.T, got any, want string) {
	t.Helper()
	if want == "" {
		return
	}
	bits := ""
	switch f := got.(type) {
	case float32:
		bits = fmt.Sprintf("0x%08x", bits32(f))
	case float64:
		bits = fmt.Sprintf("0x%016x", bits64Of(f))
	}
	if !strings.EqualFold(bits, want) {
		t.Errorf("bits are %s, want %s", bits, want)
	}
}
