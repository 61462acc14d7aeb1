package digest_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/digest"
)

// The BLAKE3 authors publish this value for the empty input.
const emptyHex = "b3:af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"

func TestDigestOfNothingIsTheOneItsAuthorsPublish(t *testing.T) {
	if got := digest.Of(nil).String(); got != emptyHex {
		t.Fatalf("digest of nothing = %s, want %s", got, emptyHex)
	}
}

func TestTextFormHasOneSpelling(t *testing.T) {
	ref := digest.RefOf([]byte("hello"))
	back, err := digest.ParseRef(ref.String())
	if err != nil || back != ref {
		t.Fatalf("ParseRef(%s) = %v, %v", ref, back, err)
	}
	for _, bad := range []string{
		"", "b3:", emptyHex[:66], emptyHex + "0", strings.ToUpper(emptyHex), "sha256" + emptyHex[2:],
		emptyHex, emptyHex + ":", emptyHex + ":01", emptyHex + ":-1", emptyHex + ":18446744073709551616",
	} {
		if got, err := digest.ParseRef(bad); !errors.Is(err, digest.ErrSyntax) {
			t.Errorf("ParseRef(%q) = %v, %v; want ErrSyntax", bad, got, err)
		}
	}
}

func TestContextsSeparateMeanings(t *testing.T) {
	data := []byte("the same bytes")
	seen := map[digest.Digest]string{digest.Of(data): "plain"}
	for _, c := range []digest.Context{digest.JobSpec, digest.Capabilities, digest.Result, digest.WireSchema} {
		d := c.Sum(data)
		if other, dup := seen[d]; dup {
			t.Errorf("%q gives the digest of %q", c, other)
		}
		seen[d] = string(c)
		if d != c.Sum(data) {
			t.Errorf("%q is not deterministic", c)
		}
	}
}

func TestErrorsStayShortWhateverTheInput(t *testing.T) {
	_, err := digest.Parse(strings.Repeat("x", 1<<20))
	if err == nil || len(err.Error()) > 300 {
		t.Fatalf("error of %d bytes for a hostile input", len(err.Error()))
	}
}

func TestAHashNamesAllBytesSoFarInWhateverPiecesTheyCame(t *testing.T) {
	data := []byte(strings.Repeat("piece by piece ", 5000))
	h := digest.NewHash()
	for _, round := range []string{"first", "again after Reset"} {
		for at := 0; at < len(data); {
			n := min(1+at%777, len(data)-at)
			if _, err := h.Write(data[at : at+n]); err != nil {
				t.Fatal(err)
			}
			at += n
			if at%31 == 0 && h.Ref() != digest.RefOf(data[:at]) {
				t.Fatalf("%s: the reference of the first %d bytes is another", round, at)
			}
		}
		if h.Ref() != digest.RefOf(data) {
			t.Fatalf("%s: %v, want %v", round, h.Ref(), digest.RefOf(data))
		}
		h.Reset()
	}
}
