package trust_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/forgeyard/forgeyard/internal/trust"
	"github.com/forgeyard/forgeyard/internal/trust/trusttest"
)

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func TestATokenIsReadAsItWasMade(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	token := w.CA.Mint()
	text := token.Reveal()
	if !strings.HasPrefix(text, trust.TokenPrefix) || !trust.IsToken("--token="+text) || len(text) > 512 {
		t.Errorf("%d bytes, not with its prefix", len(text))
	}
	for _, form := range []string{text, text + "\n", "  " + text + "\r\n"} {
		got, err := trust.ParseToken([]byte(form))
		if err != nil || !got.Hash().Equal(token.Hash()) || got.CA() != w.CA.Fingerprint() {
			t.Errorf("%v, %v", got, err)
		}
	}
	if other := w.CA.Mint(); other.Hash().Equal(token.Hash()) || other.Reveal() == text {
		t.Error("two tokens are one")
	}
}

// TestATypoIsToldFromAnUnknownToken: whoever copies one wrong should not go looking for why it was used already.
func TestATypoIsToldFromAnUnknownToken(t *testing.T) {
	text := trusttest.NewWorld(t, trusttest.Name, present).CA.Mint().Reveal()
	for i := len(trust.TokenPrefix); i < len(text); i++ {
		typo := []byte(text)
		typo[i] = 'a' + (typo[i]-'a'+1)%26
		if typo[i] < 'a' || text[i] < 'a' {
			typo[i] = 'b'
		}
		if _, err := trust.ParseToken(typo); i < len(text)-1 && !errors.Is(err, trust.ErrTokenTypo) {
			t.Fatalf("with another letter at %d: %v", i, err)
		}
		if _, err := trust.ParseToken([]byte(text[:i])); !errors.Is(err, trust.ErrTokenTypo) {
			t.Fatalf("cut at %d: %v", i, err)
		}
	}
	for _, none := range []string{"", "token", "fy_admin_" + text, strings.ToUpper(text), trust.TokenPrefix + strings.Repeat("a", 600)} {
		if _, err := trust.ParseToken([]byte(none)); !errors.Is(err, trust.ErrNoToken) {
			t.Errorf("%q: %v, want ErrNoToken", none[:min(len(none), 12)], err)
		}
	}
}

func TestATokenIsReadFromAPipeAndAPrivateFile(t *testing.T) {
	token := trusttest.NewWorld(t, trusttest.Name, present).CA.Mint()
	for name, r := range map[string]io.Reader{
		"without a line's end": strings.NewReader(token.Reveal()),
		"byte by byte":         iotest.OneByteReader(strings.NewReader(token.Reveal() + "\nmore")),
	} {
		if got, err := trust.ReadToken(r); err != nil || got.Hash() != token.Hash() {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := trust.ReadToken(iotest.ErrReader(io.ErrClosedPipe)); !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	if _, err := trust.ReadToken(strings.NewReader(strings.Repeat("x", 1<<20))); !errors.Is(err, trust.ErrNoToken) {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "token")
	if err := trust.WriteTokenFile(path, token); err != nil {
		t.Fatal(err)
	}
	if got, err := trust.ReadTokenFile(path); err != nil || got.Hash() != token.Hash() {
		t.Error(err)
	}
	if err := trust.WriteTokenFile(path, token); !errors.Is(err, os.ErrExist) {
		t.Errorf("over another one: %v", err)
	}
	if runtime.GOOS != "windows" {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := trust.ReadTokenFile(path); !errors.Is(err, trust.ErrPermissions) {
			t.Errorf("a file that everybody can read: %v", err)
		}
	}
	if _, err := trust.ReadTokenFile(filepath.Dir(path)); err == nil {
		t.Error("a folder was read")
	}
}

func TestATokensLifetimeIsBounded(t *testing.T) {
	for _, d := range []time.Duration{0, -1, trust.MaxTokenLifetime + 1} {
		if trust.CheckTokenLifetime(d) == nil {
			t.Errorf("%v was taken", d)
		}
	}
	for _, d := range []time.Duration{1, trust.TokenLifetime, trust.MaxTokenLifetime} {
		if err := trust.CheckTokenLifetime(d); err != nil {
			t.Error(err)
		}
	}
}

// TestSecretsDoNotPrint: neither a token nor a key comes out of anything that prints values, alone or inside of others.
func TestSecretsDoNotPrint(t *testing.T) {
	w := trusttest.NewWorld(t, trusttest.Name, present)
	token := w.CA.Mint()
	id := w.Runner(runner1)
	caKey, err := os.ReadFile(filepath.Join(w.Dir, "ca.key"))
	if err != nil {
		t.Fatal(err)
	}
	folder, err := trust.OpenFolder(filepath.Join(t.TempDir(), "keys"))
	if err != nil {
		t.Fatal(err)
	}
	key, err := folder.Key()
	if err != nil {
		t.Fatal(err)
	}
	ownKey, err := os.ReadFile(filepath.Join(folder.Dir(), "runner.key"))
	if err != nil {
		t.Fatal(err)
	}
	stateless, err := trust.LoadStatelessKey(w.Dir)
	if err != nil {
		t.Fatal(err)
	}
	canaries := [][]byte{[]byte(token.Reveal()[60:100]), middle(t, caKey), middle(t, ownKey)}
	for _, canary := range canaries[1:] {
		canaries = append(canaries, decimal(canary), fmt.Appendf(nil, "%x", canary), fmt.Appendf(nil, "%X", canary))
	}
	canaries = append(canaries, fmt.Appendf(nil, "%x", [32]byte(stateless)), decimal(stateless[:]))
	type holder struct {
		Token  trust.Token
		Key    trust.Key
		token  trust.Token
		key    *trust.Key
		ca     *trust.CA
		id     *trust.Identity
		cert   any
		more   []trust.Token
		Source *trust.Source
		Reset  trust.StatelessKey
	}
	values := []any{
		token, &token, key, &key, id, w.CA, *w.CA, *id, folder, stateless,
		holder{token, key, token, &key, w.CA, id, id.TLS(), []trust.Token{token}, trust.NewSource(id.TLS()), stateless},
	}
	for i, value := range values {
		var out bytes.Buffer
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%q", "%d"} {
			_, _ = fmt.Fprintf(&out, verb, value)
		}
		for _, handler := range []slog.Handler{slog.NewJSONHandler(&out, nil), slog.NewTextHandler(&out, nil)} {
			slog.New(handler).Info("value", "value", value, "error", fmt.Errorf("wrap: %v", value))
		}
		if text, err := json.Marshal(value); err == nil {
			_, _ = out.Write(text)
		}
		for j, canary := range canaries {
			if bytes.Contains(out.Bytes(), canary) {
				t.Errorf("value %d prints canary %d", i, j)
			}
		}
	}
}

// middle returns bytes of the secret part of a PEM key, raw.
func middle(t *testing.T, text []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(text)
	if block == nil || len(block.Bytes) < 32 {
		t.Fatal("no key")
	}
	return block.Bytes[len(block.Bytes)-20 : len(block.Bytes)-4]
}

// decimal is how %v prints bytes.
func decimal(b []byte) []byte { return bytes.Trim(fmt.Appendf(nil, "%d", b), "[]") }

func FuzzParseToken(f *testing.F) {
	ca, err := trust.NewCA(trusttest.Name, present)
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(ca.Mint().Reveal()))
	f.Fuzz(func(t *testing.T, text []byte) {
		token, err := trust.ParseToken(text)
		if err != nil {
			return
		}
		if again, err := trust.ParseToken([]byte(token.Reveal())); err != nil || again.Hash() != token.Hash() {
			t.Error("it does not survive its own text")
		}
	})
}
