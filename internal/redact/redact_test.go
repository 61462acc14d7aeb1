package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/redact"
)

// canary is a secret that is nowhere else, and no part of which is.
const canary = "cNry-7fQ+x/Zk9~Wp2"

// masked writes pieces to a fresh stream, flushes, and returns all that came out.
func masked(t testing.TB, r *redact.Redactor, pieces ...string) string {
	t.Helper()
	var out bytes.Buffer
	s := r.Stream(&out)
	for _, p := range pieces {
		if n, err := s.Write([]byte(p)); n != len(p) || err != nil {
			t.Fatalf("Write of %d bytes = %d, %v", len(p), n, err)
		}
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func secrets(values ...string) *redact.Redactor {
	all := make([][]byte, len(values))
	for i, v := range values {
		all[i] = []byte(v)
	}
	return redact.New(all...)
}

// S20.
func TestASecretIsMaskedHoweverTheStreamIsSplit(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	text := "begin " + canary + " middle" + canary + canary + "\nand " + base64.StdEncoding.EncodeToString([]byte(canary)) +
		" or " + hex.EncodeToString([]byte(canary)) + " end " + canary[:9]
	r := secrets(canary)
	want := "begin *** middle***\nand *** or *** end " + canary[:9]
	for range 1000 {
		var pieces []string
		for rest := text; rest != ""; {
			n := 1 + rng.IntN(min(len(rest), 1+rng.IntN(40)))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := masked(t, r, pieces...); got != want {
			t.Fatalf("pieces %q: %q, want %q", pieces, got, want)
		}
	}
}

// Case B65.
func TestTheLongerOfTwoSecretsLeavesNoTail(t *testing.T) {
	for _, r := range []*redact.Redactor{secrets("abc", "abcdef"), secrets("abcdef", "abc")} {
		for text, want := range map[string]string{
			"x abcdef y": "x *** y", "x abc y": "x *** y", "abcdeabc": "***de***", "abcabcdef": "***", "abcde": "***de",
		} {
			if got := masked(t, r, text); got != want {
				t.Errorf("%q became %q, want %q", text, got, want)
			}
		}
	}
}

func TestOverlappingSecretsAreCoveredTogether(t *testing.T) {
	if got := masked(t, secrets("start-mid", "mid-end!"), "<start-mid-end!>"); got != "<***>" {
		t.Errorf("got %q", got)
	}
}

// Case B64.
func TestShortValuesAreLeftAloneAndNamed(t *testing.T) {
	r := secrets("", "a", "{", "\n", "long enough", " \n x")
	if got := fmt.Sprint(r.Unmasked()); got != "[0 1 2 3 5]" {
		t.Errorf("Unmasked() = %v", got)
	}
	text := "{ a }\n  x long enough\n"
	if got := masked(t, r, text); got != "{ a }\n  x ***\n" {
		t.Errorf("got %q", got)
	}
}

const pem = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIKt5lAeHXEFmOBCTCCeD4NBbFPdJxYFtAGY0NeQSfyzW
kZx0q8Yl2uTnVb7sRmAe5hJcDwGfPiOoLtUvXyZz1234567890ab
Qw==
-----END PRIVATE KEY-----
`

// Case B62.
func TestASecretOfSeveralLinesIsMaskedInEveryShapeThatAShellGivesIt(t *testing.T) {
	r := secrets(pem)
	quoted := strings.NewReplacer("\n", `\n`).Replace(strings.TrimSpace(pem))
	for name, text := range map[string]string{
		"cat":           pem,
		"echo $K":       strings.Join(strings.Fields(pem), " "),
		"set -x":        "+ echo '" + strings.TrimSpace(pem) + "'",
		"set -x, words": "+ echo " + strings.Join(strings.Fields(pem), " "),
		"set -x, ansi":  "+ K=$'" + quoted + "'",
		"json":          `{"key":"` + quoted + `"}`,
		"windows":       strings.ReplaceAll(pem, "\n", "\r\n"),
	} {
		got := masked(t, r, text)
		for line := range strings.Lines(pem) {
			if line = strings.TrimSpace(line); len(line) >= redact.MinPart && strings.Contains(got, line) {
				t.Errorf("%s: %q shows %q", name, got, line)
			}
		}
		if strings.Contains(got, "Qw==") && name != "windows" { // a line that is too short to be masked alone
			t.Errorf("%s: %q shows the last line", name, got)
		}
	}
}

func TestALineOfASecretIsMaskedWhereItStandsAlone(t *testing.T) {
	if got := masked(t, secrets("first line\nsecond line\ntiny"), "tiny: second line, first"); got != "tiny: ***, first" {
		t.Errorf("got %q", got)
	}
}

// Case B66.
func TestTheStringsOfAJSONSecretAreMaskedPrettyAndMinified(t *testing.T) {
	account := map[string]any{
		"type": "service_account", "private_key_id": "0badc0de0badc0de", "private_key": pem, "short": "tiny",
		"nested": []any{map[string]any{"token": "nested-t<k>n"}}, "number": 12345678901,
	}
	pretty, _ := json.MarshalIndent(account, "", "  ")
	minified, _ := json.Marshal(account)
	var plain bytes.Buffer
	e := json.NewEncoder(&plain)
	e.SetEscapeHTML(false)
	if err := e.Encode(account); err != nil {
		t.Fatal(err)
	}
	for _, stored := range [][]byte{pretty, minified, plain.Bytes()} {
		r := redact.New(stored)
		for _, printed := range []string{string(pretty), string(minified), plain.String(), account["private_key"].(string)} {
			got := masked(t, r, printed)
			for _, part := range []string{"service_account", "0badc0de0badc0de", "MC4CAQAwBQYDK2Vw", "kZx0q8Yl2uTnVb7s", "nested-t<k>n"} {
				if strings.Contains(got, part) {
					t.Errorf("%q shows %q", got, part)
				}
			}
		}
	}
}

// S20.
func TestASecretIsMaskedWithinUsualEncodings(t *testing.T) {
	long := strings.Repeat(canary+"?", 9)
	wrapped := base64.StdEncoding.EncodeToString([]byte(long + "\n"))
	for i := 76; i < len(wrapped); i += 77 {
		wrapped = wrapped[:i] + "\n" + wrapped[i:]
	}
	for name, text := range map[string]string{
		"hex":           hex.EncodeToString([]byte(long)),
		"hex, upper":    strings.ToUpper(hex.EncodeToString([]byte(long))),
		"query":         url.QueryEscape(long),
		"path":          url.PathEscape(long),
		"base64 lines":  wrapped,
		"base64":        base64.StdEncoding.EncodeToString([]byte(long)),
		"base64 url":    base64.URLEncoding.EncodeToString([]byte(long)),
		"base64 no pad": base64.RawStdEncoding.EncodeToString([]byte(long)),
	} {
		got := strings.Trim(masked(t, secrets(long), text), "*\n")
		if got != "" && (name != "base64 lines" || len(got) >= redact.MinPart) { // the last of its lines is a line break
			t.Errorf("%s: %q is left", name, got)
		}
	}
}

func TestASecretIsMaskedWithinTheEncodingOfALongerText(t *testing.T) {
	for before := range 7 {
		for after := range 4 {
			text := strings.Repeat("u", before) + canary + strings.Repeat(":", after)
			for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
				got := masked(t, secrets(canary), enc.EncodeToString([]byte(text)))
				left, err := base64.RawStdEncoding.DecodeString(strings.NewReplacer("*", "", "=", "", "-", "+", "_", "/").Replace(got))
				if !strings.Contains(got, redact.Mask) || len(got) > len(redact.Mask)+(before+after)*4/3+8 {
					t.Errorf("%d before, %d behind: %q is left (%q, %v)", before, after, got, left, err)
				}
			}
		}
	}
}

func TestOtherBytesPassUntouched(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 200_000)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	text := string(noise) + "\x00\xff\xfe\r\n no newline at the end"
	for name, r := range map[string]*redact.Redactor{"no secrets": redact.New(), "a secret": secrets(canary)} {
		if got := masked(t, r, text); got != text {
			t.Errorf("%s: %d bytes became %d", name, len(text), len(got))
		}
	}
}

func TestAStreamHoldsBackLessThanTheLongestForm(t *testing.T) {
	r := secrets("0123456789")
	var out bytes.Buffer
	s := r.Stream(&out)
	write := func(text, want string) {
		t.Helper()
		if _, err := s.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); got != want {
			t.Errorf("after %q: %q, want %q", text, got, want)
		}
	}
	write("plain\n", "plain\n")
	write("01234567", "plain\n")
	write("8", "plain\n")
	write("x", "plain\n012345678x")
	write("0123456789", "plain\n012345678x***")
	write("0123456789.", "plain\n012345678x***.")
}

func TestWithoutSecretsBytesAreHandedOnAsTheyAre(t *testing.T) {
	p := []byte("the very same bytes")
	var got []byte
	if _, err := redact.New().Stream(writer(func(b []byte) (int, error) { got = b; return len(b), nil })).Write(p); err != nil {
		t.Fatal(err)
	}
	if &got[0] != &p[0] {
		t.Error("the bytes were copied")
	}
}

func TestNoWriteIsLongerThanMaxWrite(t *testing.T) {
	for _, r := range []*redact.Redactor{redact.New(), secrets(canary)} {
		longest := 0
		s := r.Stream(writer(func(b []byte) (int, error) { longest = max(longest, len(b)); return len(b), nil }))
		if _, err := s.Write(make([]byte, 3*redact.MaxWrite+1)); err != nil || longest != redact.MaxWrite {
			t.Errorf("longest write %d, %v", longest, err)
		}
	}
}

func TestTheWritersErrorComesBack(t *testing.T) {
	want := errors.New("full")
	for _, r := range []*redact.Redactor{redact.New(), secrets(canary)} {
		if _, err := r.Stream(writer(func([]byte) (int, error) { return 0, want })).Write([]byte("x")); !errors.Is(err, want) {
			t.Errorf("got %v", err)
		}
	}
}

func TestARedactorPrintsNothingOfItsSecrets(t *testing.T) {
	r := secrets(canary)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d"} {
		if got := fmt.Sprintf(verb, r); got != "[redactor]" {
			t.Errorf("%s prints %q", verb, got)
		}
	}
	if got := r.Redact("key " + canary + "."); got != "key ***." {
		t.Errorf("Redact: %q", got)
	}
}

func TestValuesBeyondTheBoundAreNamed(t *testing.T) {
	var values [][]byte
	for i := range 70 {
		v := bytes.Repeat([]byte{byte('A' + i)}, 64<<10)
		values = append(values, v)
	}
	r := redact.New(values...)
	if got := r.Unmasked(); len(got) != 70-redact.MaxForms/(64<<10) || got[0] != redact.MaxForms/(64<<10) {
		t.Errorf("Unmasked() = %v", got)
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }
