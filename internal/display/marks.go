package display

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"github.com/forgeyard/forgeyard/internal/console"
)

// A Level is how much somebody should care about a note.
type Level uint8

// The levels, the most important first.
const (
	Error   Level = 1
	Warning Level = 2
	Notice  Level = 3
)

// ParseLevel reads a level's name; what is none is a notice.
func ParseLevel(name string) Level {
	switch name {
	case "error":
		return Error
	case "warning":
		return Warning
	}
	return Notice
}

// String is the level's name.
func (l Level) String() string {
	switch l {
	case Error:
		return "error"
	case Warning:
		return "warning"
	}
	return "notice"
}

// A Note is a remark about a place of the source. Its texts are safe, and on one line each.
type Note struct {
	Level  Level
	File   string // may be empty, like the next two
	Line   int
	Column int
	Text   string
}

// Place is the file with line and column, as editors and compilers write it; empty without a file.
func (n Note) Place() string {
	switch {
	case n.File == "" || n.Line == 0:
		return n.File
	case n.Column == 0:
		return fmt.Sprintf("%s:%d", n.File, n.Line)
	}
	return fmt.Sprintf("%s:%d:%d", n.File, n.Line, n.Column)
}

// mark is what a line stands for.
type mark struct {
	kind  Kind
	title string
	note  Note
}

// markOf reads the marks that other systems know: ::group:: and ::endgroup::, ::error::, ::warning:: and ::notice:: with their
// properties, and section_start and section_end. Whatever else a line says, it is text.
func markOf(raw []byte) mark {
	if !bytes.Contains(raw, []byte("::")) && !bytes.Contains(raw, []byte("section_")) {
		return mark{kind: Text} // as nearly every line
	}
	if m, ok := section(raw); ok {
		return m
	}
	line := strings.TrimLeft(safe(last(raw), true), " \t")
	rest, ok := strings.CutPrefix(line, "::")
	if !ok {
		return mark{kind: Text}
	}
	command, text, ok := strings.Cut(rest, "::")
	if !ok {
		return mark{kind: Text}
	}
	name, properties, _ := strings.Cut(command, " ")
	switch name {
	case "group":
		return mark{kind: GroupBegin, title: console.Cell(unescape(text, false))}
	case "endgroup":
		return mark{kind: GroupEnd}
	case "error", "warning", "notice":
		n := Note{Level: ParseLevel(name), Text: strings.TrimSpace(console.Cell(unescape(text, false)))}
		n.read(properties)
		return mark{kind: Remark, note: n}
	}
	return mark{kind: Text}
}

// read reads properties such as file=app.js,line=1,col=5.
func (n *Note) read(properties string) {
	for property := range strings.SplitSeq(properties, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(property), "=")
		switch name {
		case "file":
			n.File = console.Cell(unescape(value, true))
		case "line":
			n.Line = number(value)
		case "col":
			n.Column = number(value)
		case "title":
			if title := console.Cell(unescape(value, true)); title != "" {
				n.Text = title + ": " + n.Text
			}
		}
	}
}

// number reads a place in a file; what is none is 0.
func number(text string) int {
	n, err := strconv.ParseUint(text, 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}

// unescape undoes how a mark writes characters that would end it.
func unescape(text string, property bool) string {
	if property {
		text = strings.NewReplacer("%3A", ":", "%2C", ",", "%0D", " ", "%0A", " ", "%25", "%").Replace(text)
		return text
	}
	return strings.NewReplacer("%0D%0A", " ", "%0D", " ", "%0A", " ", "%25", "%").Replace(text)
}

// section reads a mark such as "section_start:1560896352:name[collapsed=true]\r\x1b[0KTitle".
func section(raw []byte) (mark, bool) {
	line := bytes.TrimPrefix(raw, []byte("\x1b[0K"))
	ends := bytes.HasPrefix(line, []byte("section_end:"))
	if !ends && !bytes.HasPrefix(line, []byte("section_start:")) {
		return mark{}, false
	}
	head, title, _ := bytes.Cut(line, []byte("\r"))
	parts := strings.SplitN(string(head), ":", 3)
	if len(parts) != 3 || number(parts[1]) == 0 {
		return mark{}, false
	}
	if ends {
		return mark{kind: GroupEnd}, true
	}
	text := strings.TrimSpace(safe(title, true))
	if text == "" {
		text, _, _ = strings.Cut(console.Cell(parts[2]), "[")
	}
	return mark{kind: GroupBegin, title: text}, true
}
