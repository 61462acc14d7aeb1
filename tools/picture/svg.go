package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/forgeyard/forgeyard/internal/display/emulator"
)

// Measures of the picture, in its own units.
const (
	charWidth  = 8
	lineHeight = 18
	border     = 14
	gap        = 12 // between the two states
)

// classes are the styles of the colours that occur. Text is on a dark ground of its own, so it reads in light and dark.
var classes = []struct{ code, class, style string }{
	{"1", "b", "font-weight:bold"},
	{"2", "d", "fill:#8b949e"},
	{"31", "r", "fill:#ff7b72"},
	{"32", "g", "fill:#56d364"},
	{"33", "y", "fill:#e3b341"},
	{"34", "u", "fill:#79c0ff"},
	{"35", "m", "fill:#d2a8ff"},
	{"36", "c", "fill:#56d4dd"},
	{"94", "u", ""},
	{"95", "m", ""},
	{"96", "c", ""},
}

// svg draws screens below each other.
func svg(screens ...[][]emulator.Cell) []byte {
	rows := 0
	for i := range screens {
		screens[i] = trimmed(screens[i])
		rows += len(screens[i])
	}
	w := width*charWidth + 2*border
	h := rows*lineHeight + len(screens)*2*border + (len(screens)-1)*gap
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="forgeyard run at a terminal: while jobs run, and at the end">`+"\n", w, h, w, h)
	out.WriteString("<style>text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;fill:#e6edf3;white-space:pre}")
	for _, c := range classes {
		if c.style != "" {
			fmt.Fprintf(&out, ".%s{%s}", c.class, c.style)
		}
	}
	out.WriteString("</style>\n")
	y := 0
	for _, screen := range screens {
		high := len(screen)*lineHeight + 2*border
		fmt.Fprintf(&out, `<rect x="0" y="%d" width="%d" height="%d" rx="8" fill="#0d1117" stroke="#30363d"/>`+"\n", y, w, high)
		for i, line := range screen {
			drawLine(&out, line, y+border+(i+1)*lineHeight-5)
		}
		y += high + gap
	}
	out.WriteString("</svg>\n")
	return out.Bytes()
}

// trimmed leaves out empty lines at the end.
func trimmed(screen [][]emulator.Cell) [][]emulator.Cell {
	for len(screen) > 0 && textOf(screen[len(screen)-1]) == "" {
		screen = screen[:len(screen)-1]
	}
	return screen
}

func textOf(line []emulator.Cell) string {
	var text strings.Builder
	for _, c := range line {
		text.WriteString(c.Text)
	}
	return strings.TrimRight(text.String(), " ")
}

// drawLine draws pieces of one colour, each at its own place, so that no font moves what follows.
func drawLine(out *bytes.Buffer, line []emulator.Cell, y int) {
	if textOf(line) == "" {
		return
	}
	fmt.Fprintf(out, `<text y="%d">`, y)
	for from := 0; from < len(line); {
		to := from + 1
		for to < len(line) && line[to].Colour == line[from].Colour {
			to++
		}
		if text := textOf(line[from:to]); text != "" {
			fmt.Fprintf(out, `<tspan x="%d"%s>`, border+from*charWidth, classOf(line[from].Colour))
			_ = xml.EscapeText(out, []byte(text)) // a buffer takes everything
			out.WriteString("</tspan>")
		}
		from = to
	}
	out.WriteString("</text>\n")
}

func classOf(colour string) string {
	var names []string
	for code := range strings.SplitSeq(colour, ";") {
		for _, c := range classes {
			if c.code == code {
				names = append(names, c.class)
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(` class="%s"`, strings.Join(names, " "))
}
