// Package emulator is a terminal in memory: it takes what a program sends, and says what a person would see of it. It
// understands what our own programs may send and nothing else: text, line ends, tabs, colours, moves up, erasing below, and
// whether lines wrap. Anything else is taken down as wrong, so that a test fails where something passes that should not.
//
// An Emulator has one user at a time and starts no goroutine; a Seat, a terminal of the kernel with somebody before it, owns one.
package emulator

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/display"
)

// A Cell is one place of the screen.
type Cell struct {
	Text   string // a character with what is above it; empty behind a wide one
	Colour string // parameters of the colours that it was written in, as they hold: "1;31"
}

// row is one line of the screen.
type row struct {
	cells   []Cell
	wrapped bool // it goes on in the next one
}

// An Emulator is a terminal.
type Emulator struct {
	width, height int
	rows          []row // all that there is, what was scrolled out at the top included
	top           int   // the first row that is on the screen
	x, y          int   // the cursor; y counts from the first of rows
	hanging       bool  // the cursor stands behind the last column
	wraps         bool
	colour        string
	rest          []byte // of a character or a sequence
	wrong         []string
}

// New returns an empty terminal.
func New(width, height int) *Emulator {
	return &Emulator{width: width, height: height, rows: []row{{}}, wraps: true}
}

// Wrong returns what came that it does not know.
func (e *Emulator) Wrong() []string { return e.wrong }

// Screen returns the lines on the screen, without spaces at their ends, down to the last one that has anything.
func (e *Emulator) Screen() []string { return texts(e.rows[e.top:]) }

// All returns all lines that there are, those that were scrolled out included, each in one piece however it wraps.
func (e *Emulator) All() []string { return texts(unwrapped(e.rows)) }

// Cells returns the lines on the screen.
func (e *Emulator) Cells() [][]Cell {
	var lines [][]Cell
	for _, r := range e.rows[e.top:] {
		lines = append(lines, r.cells)
	}
	return lines
}

// Wraps reports whether lines wrap, as they should wherever a program ends.
func (e *Emulator) Wraps() bool { return e.wraps }

func texts(rows []row) []string {
	var lines []string
	for _, r := range rows {
		var text strings.Builder
		for _, c := range r.cells {
			text.WriteString(c.Text)
		}
		lines = append(lines, strings.TrimRight(text.String(), " "))
	}
	for len(lines) > 0 && lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// unwrapped puts rows together that are one line.
func unwrapped(rows []row) []row {
	var lines []row
	goesOn := false
	for _, r := range rows {
		if goesOn {
			last := &lines[len(lines)-1]
			last.cells = append(last.cells, r.cells...)
		} else {
			lines = append(lines, row{cells: append([]Cell(nil), r.cells...)})
		}
		goesOn = r.wrapped
	}
	return lines
}

// Resize gives the terminal another size and wraps its lines anew, as most terminals do. The cursor is at the end of what
// there is.
func (e *Emulator) Resize(width, height int) {
	lines := unwrapped(e.rows[:e.y+1])
	e.width, e.height, e.rows = width, height, nil
	for _, l := range lines {
		for len(l.cells) > width {
			e.rows = append(e.rows, row{cells: l.cells[:width:width], wrapped: true})
			l.cells = l.cells[width:]
		}
		e.rows = append(e.rows, row{cells: l.cells})
	}
	e.y = len(e.rows) - 1
	e.x = len(e.rows[e.y].cells)
	e.hanging = false
	e.top = max(0, len(e.rows)-height)
}

// Write takes what a program sends.
func (e *Emulator) Write(p []byte) (int, error) {
	data := append(e.rest, p...)
	e.rest = nil
	for len(data) > 0 {
		if data[0] == 0x1b {
			n := e.sequence(data)
			if n == 0 {
				break
			}
			data = data[n:]
			continue
		}
		if !utf8.FullRune(data) {
			break
		}
		r, n := utf8.DecodeRune(data)
		data = data[n:]
		e.character(r)
	}
	e.rest = append([]byte(nil), data...)
	return len(p), nil
}

// character takes one.
func (e *Emulator) character(r rune) {
	switch {
	case r == '\n': // as a terminal gets it whose line discipline is in order, with the return of the carriage
		e.x, e.hanging = 0, false
		e.down()
	case r == '\r':
		e.x, e.hanging = 0, false
	case r == '\t':
		for e.put(" "); e.x%8 != 0 && !e.hanging; {
			e.put(" ")
		}
	case r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069:
		e.wrong = append(e.wrong, fmt.Sprintf("%U", r))
	case display.Width(string(r)) == 0:
		if cells := e.rows[e.y].cells; e.x > 0 && e.x <= len(cells) {
			cells[e.x-1].Text += string(r)
		}
	default:
		e.put(string(r))
	}
}

// put writes a character where the cursor is.
func (e *Emulator) put(text string) {
	n := display.Width(text)
	if e.hanging || e.x+n > e.width {
		if !e.wraps {
			e.x = e.width - n
		} else {
			e.rows[e.y].wrapped = true
			e.x = 0
			e.down()
		}
		e.hanging = false
	}
	r := &e.rows[e.y]
	for len(r.cells) < e.x+n {
		r.cells = append(r.cells, Cell{Text: " "})
	}
	r.cells[e.x] = Cell{text, e.colour}
	if n == 2 {
		r.cells[e.x+1] = Cell{}
	}
	if e.x += n; e.x >= e.width {
		e.x, e.hanging = e.width-1, true
	}
}

// down moves the cursor to the next row, which may be a new one.
func (e *Emulator) down() {
	if e.y++; e.y == len(e.rows) {
		e.rows = append(e.rows, row{})
	}
	e.top = max(e.top, e.y-e.height+1)
}

// sequence takes one, and returns how long it is; 0 where it is not whole yet.
func (e *Emulator) sequence(data []byte) int {
	if len(data) < 2 {
		return 0
	}
	if data[1] != '[' {
		e.wrong = append(e.wrong, fmt.Sprintf("%q", data[:2]))
		return 2
	}
	for i := 2; i < len(data); i++ {
		if data[i] >= 0x40 && data[i] <= 0x7e {
			e.control(string(data[2:i]), data[i])
			return i + 1
		}
	}
	return 0
}

func (e *Emulator) control(parameters string, final byte) {
	n, err := strconv.Atoi(parameters)
	switch {
	case final == 'm' && strings.Trim(parameters, "0123456789;:") == "":
		e.paint(parameters)
	case final == 'A' && err == nil && n > 0:
		e.y, e.hanging = max(e.top, e.y-n), false
	case final == 'J' && parameters == "":
		e.rows = e.rows[:e.y+1]
		r := &e.rows[e.y]
		r.cells, r.wrapped = r.cells[:min(e.x, len(r.cells))], false
	case final == 'l' && parameters == "?7":
		e.wraps = false
	case final == 'h' && parameters == "?7":
		e.wraps = true
	default:
		e.wrong = append(e.wrong, fmt.Sprintf("%q", "\x1b["+parameters+string(final)))
	}
}

func (e *Emulator) paint(parameters string) {
	switch {
	case strings.Trim(parameters, "0") == "":
		e.colour = ""
	case strings.HasPrefix(parameters, "0;"):
		e.colour = parameters[2:]
	case e.colour == "":
		e.colour = parameters
	default:
		e.colour += ";" + parameters
	}
}
