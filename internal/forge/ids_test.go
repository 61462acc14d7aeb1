package forge_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/forgeyard/forgeyard/internal/forge"
)

func TestAnIDIsParsedFromWhatItPrints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		id := forge.MakeID[forge.LeaseID](forge.ULID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "bits")))
		text := id.String()
		if len(text) != 26 || strings.ToUpper(text) != text {
			t.Fatalf("%q is not 26 upper-case digits", text)
		}
		back, err := forge.ParseID[forge.LeaseID](text)
		if err != nil || back != id {
			t.Fatalf("ParseID(%s) = %v, %v", text, back, err)
		}
	})
}

func TestTextThatNoIDPrintsIsRefused(t *testing.T) {
	const good = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
	if _, err := forge.ParseID[forge.RunID](good); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		"", good[1:], good + "0", " " + good[1:], strings.ToLower(good), "01arz3NDEKTSV4RRFFQ69G5FAV",
		"81ARZ3NDEKTSV4RRFFQ69G5FAV", // more than 128 bits
		"01ARZ3NDEKTSV4RRFFQ69G5FAI", "01ARZ3NDEKTSV4RRFFQ69G5FAL", "01ARZ3NDEKTSV4RRFFQ69G5FAO", "01ARZ3NDEKTSV4RRFFQ69G5FAU",
		"01ARZ3NDEK-SV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FÄ", strings.Repeat("0", 1<<20),
	} {
		id, err := forge.ParseID[forge.RunID](bad)
		if !errors.Is(err, forge.ErrID) || !id.IsZero() {
			t.Errorf("ParseID(%.40q) = %v, %v", bad, id, err)
		}
		if err != nil && len(err.Error()) > 300 {
			t.Errorf("the error for %d bytes has %d", len(bad), len(err.Error()))
		}
	}
}

func TestIDsAreOrderedAsTheirTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SliceOfN(rapid.Byte(), 16, 16)
		a, b := forge.ULID(bits.Draw(t, "a")), forge.ULID(bits.Draw(t, "b"))
		if got, want := a.Compare(b), strings.Compare(a.String(), b.String()); got != want {
			t.Fatalf("%v and %v compare as %d, their texts as %d", a, b, got, want)
		}
	})
}

func TestOnlyTheZeroIDIsNone(t *testing.T) {
	if !(forge.JobID{}).IsZero() || forge.MakeID[forge.JobID](forge.ULID{15: 1}).IsZero() {
		t.Error("the zero id, and no other, means none")
	}
}
