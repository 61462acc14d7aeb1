package forge_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// canary is a secret of which every spelling that a printer may choose is known.
const canary = "hunter2-canary"

// spellings of the canary: plain, hexadecimal in both cases, decimal bytes, base64.
var spellings = []string{
	canary, "hunter2", fmt.Sprintf("%x", canary), fmt.Sprintf("%X", canary), "104 117 110 116", "104, 117, 110", "0x68, 0x75",
	"aHVudGVy",
}

func refuseCanary(t *testing.T, how, printed string) {
	t.Helper()
	for _, s := range spellings {
		if strings.Contains(printed, s) {
			t.Errorf("%s prints the secret: %s", how, printed)
		}
	}
}

// holder has a secret where fmt asks no methods.
type holder struct {
	Name     string
	Exported forge.Secret
	hidden   forge.Secret
}

func carriers() map[string]any {
	s := forge.NewSecret([]byte(canary))
	return map[string]any{
		"value": s, "pointer": &s, "struct": holder{"n", s, s}, "pointer to struct": &holder{"n", s, s},
		"slice": []forge.Secret{s}, "array": [1]forge.Secret{s}, "map": map[string]forge.Secret{"k": s},
		"interface": any(s), "nested": []any{map[string]any{"k": holder{"n", s, s}}},
	}
}

func TestNoVerbPrintsASecret(t *testing.T) {
	for name, carrier := range carriers() {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "% x", "%d", "%c", "%U", "%b", "%o", "%t", "%p", "%T", "%e", "%10.3s", "%z"} {
			refuseCanary(t, name+" "+verb, fmt.Sprintf(verb, carrier))
		}
		refuseCanary(t, name+" Sprint", fmt.Sprint(carrier))
	}
	if got := fmt.Sprintf("%v %+v %#v %s %d", forge.Secret{}, forge.Secret{}, forge.Secret{}, forge.Secret{}, forge.Secret{}); got != strings.TrimSpace(strings.Repeat("[secret] ", 5)) {
		t.Errorf("an empty secret can be told from a full one: %s", got)
	}
}

func TestNoEncoderWritesASecret(t *testing.T) {
	for name, carrier := range carriers() {
		out, err := json.Marshal(carrier)
		if err != nil {
			t.Errorf("%s as JSON: %v", name, err)
		}
		refuseCanary(t, name+" as JSON", string(out))
		out, _ = xml.Marshal(carrier)
		refuseCanary(t, name+" as XML", string(out))
	}
	text, err := forge.NewSecret([]byte(canary)).MarshalText()
	if err != nil || string(text) != "[secret]" {
		t.Errorf("MarshalText = %s, %v", text, err)
	}
	if got := forge.NewSecret([]byte(canary)).String() + forge.NewSecret([]byte(canary)).GoString(); got != "[secret][secret]" {
		t.Error(got)
	}
}

func TestNoLogHandlerWritesASecret(t *testing.T) {
	var out bytes.Buffer
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		log := slog.New(handler)
		for name, carrier := range carriers() {
			log.Info("message", name, carrier, slog.Group("group", "inner", carrier))
		}
	}
	refuseCanary(t, "slog", out.String())
	if !strings.Contains(out.String(), "[secret]") {
		t.Error("nothing was logged")
	}
}

func TestNoErrorCarriesASecret(t *testing.T) {
	for name, carrier := range carriers() {
		err := fmt.Errorf("resolve: %w", errors.Join(fmt.Errorf("value %v", carrier), fmt.Errorf("value %+v", carrier)))
		refuseCanary(t, name+" in an error", fmt.Sprintf("%v %+v %#v", err, err, err))
	}
}

func TestASecretIsRevealedUntilItIsWipedForAllCopies(t *testing.T) {
	given := []byte(canary)
	s := forge.NewSecret(given)
	clear(given)
	sharer := s
	inside := s.Reveal()
	if string(inside) != canary {
		t.Fatal("the secret is not what was put in, or shares the caller's bytes")
	}
	sharer.Zero()
	if s.Reveal() != nil || !bytes.Equal(inside, make([]byte, len(canary))) {
		t.Error("a copy still holds the value")
	}
	s.Zero()
	forge.Secret{}.Zero()
	if (forge.Secret{}).Reveal() != nil {
		t.Error("the zero secret holds something")
	}
}

func TestASecretReferenceHasOneSpelling(t *testing.T) {
	for _, ref := range []forge.SecretRef{{Name: "a"}, {Name: "codecov/token"}, {Name: "a", Version: 1}, {Name: "a/b.c", Version: 1<<32 - 1}} {
		back, err := forge.ParseSecretRef(ref.String())
		if diff := cmp.Diff(ref, back); diff != "" || err != nil {
			t.Errorf("%v: %v %s", ref, err, diff)
		}
	}
	for _, bad := range []string{"", "@1", "a@", "a@0", "a@01", "a@-1", "a@4294967296", "a@1@2", "a b", "/a", "a/", "a//b", "../a", strings.Repeat("a", 129)} {
		if got, err := forge.ParseSecretRef(bad); !errors.Is(err, forge.ErrInvalid) {
			t.Errorf("ParseSecretRef(%q) = %v, %v", bad, got, err)
		}
	}
}
