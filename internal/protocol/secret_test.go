package protocol_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/protocol"
)

// holders have what must not print in every place where fmt might look for it.
type (
	holder struct {
		Value  *protocol.SecretV1
		hidden *protocol.SecretV1
	}
	deeper struct {
		hidden  holder
		pointer *holder
		message any
	}
)

func TestASecretOnTheWireCannotBePrinted(t *testing.T) {
	const value = "hunter2"
	secret := protocol.NewSecret([]byte(value))
	h := holder{Value: secret, hidden: secret}
	shown := []any{secret, *secret, h, &h, deeper{h, &h, &h}, &deeper{h, &h, h}, []any{secret, h}, map[string]holder{"k": h}}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%b", "%o", "%c", "%U", "%p", "%t", "%z"} {
		for _, v := range shown {
			fmt.Fprintf(&out, verb, v)
		}
	}
	for _, v := range shown {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(data)
	}
	for _, handler := range []slog.Handler{slog.NewTextHandler(&out, nil), slog.NewJSONHandler(&out, nil)} {
		slog.New(handler).Info("message", "secret", secret, "plain", *secret, "holder", h, "deeper", deeper{h, &h, h})
	}
	for _, form := range []string{value, fmt.Sprintf("%x", value), fmt.Sprintf("%X", value), "aHVudGVyMg", "104 117 110", "68, 0x75"} {
		if strings.Contains(out.String(), form) {
			t.Errorf("the secret shows as %s", form)
		}
	}
	if string(secret.Reveal()) != value {
		t.Error("the secret is lost")
	}
	secret.Wipe()
	if secret.Reveal() != nil || h.Value.Reveal() != nil {
		t.Error("the bytes are still there")
	}
}
