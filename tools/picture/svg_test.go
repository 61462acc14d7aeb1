package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/display/emulator"
)

func TestAPictureIsOfWhatIsSeen(t *testing.T) {
	e := emulator.New(width, 5)
	_, _ = e.Write([]byte("$ run <a & b>\n\x1b[1;31mred\x1b[0m plain \x1b[36mjob |\x1b[0m x\n"))
	got := string(svg(e.Cells()))
	for _, want := range []string{
		`<tspan x="14">$ run &lt;a &amp; b&gt;</tspan>`, `<tspan x="14" class="b r">red</tspan>`, `<tspan x="38"> plain</tspan>`, `<tspan x="94" class="c">job |</tspan>`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	whole(t, got)
}

// whole fails unless a text is XML.
func whole(t *testing.T, text string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheCommittedPictureIsWholeAndSmall(t *testing.T) {
	text, err := os.ReadFile("../../docs/images/run.svg")
	if err != nil {
		t.Fatal(err)
	}
	whole(t, string(text))
	if len(text) > 32<<10 {
		t.Errorf("%d bytes", len(text))
	}
	for _, want := range []string{"forgeyard run", "Ctrl-C cancels", "all of it: forgeyard logs", "run Failed"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("it has no %q", want)
		}
	}
}
