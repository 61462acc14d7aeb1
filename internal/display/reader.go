package display

import (
	"bytes"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/console"
)

// Bounds of what is read of a log.
const (
	maxLine  = 8 << 10 // bytes of a line; a longer one is shown in pieces
	maxSaid  = 512     // bytes of a line under way
	maxGroup = 8       // groups within groups
)

// A Kind is what an Item is.
type Kind uint8

// The kinds of items.
const (
	Text       Kind = 1
	GroupBegin Kind = 2 // Text is its title
	GroupEnd   Kind = 3 // Took says how long it took, if that is known
	Remark     Kind = 4 // Note is what it says
)

// An Item is one line of a log, or what it marks. Its text has no control characters but tabs and colours, and colours end
// with it.
type Item struct {
	Kind  Kind
	Depth int // of groups around it
	Text  string
	Note  Note
	Took  time.Duration
}

// A Reader reads the log of one attempt. The zero value is ready.
type Reader struct {
	Colourless bool
	streams    [2]stream
	groups     []time.Time // when those began that have not ended
}

// stream is what one of the two outputs has said.
type stream struct {
	rest   []byte // a line without its end
	colour string // sequences that hold at the beginning of the next line
}

// Read takes what was written to an output at a time, and returns the lines that are whole with it.
func (r *Reader) Read(stderr bool, data []byte, at time.Time) []Item {
	s := r.stream(stderr)
	left := data
	if len(s.rest) > 0 {
		s.rest = append(s.rest, data...)
		left = s.rest
	}
	var items []Item
	for {
		line, n := cutLine(left)
		if n == 0 {
			s.rest = append([]byte(nil), underWay(left)...)
			return items
		}
		items = r.line(items, s, line, at)
		left = left[n:]
	}
}

// cutLine returns the line at the beginning of data, or a piece of it where it is too long, and how many bytes it takes with its
// end; none where it is not whole yet.
func cutLine(data []byte) (line []byte, n int) {
	i := bytes.IndexByte(data, '\n')
	if i < 0 {
		if len(underWay(data)) < maxLine {
			return nil, 0
		}
		i = len(data)
	}
	if i <= maxLine || len(last(data[:i])) <= maxLine { // also where all but the end was written over
		return data[:i], min(i+1, len(data))
	}
	return data[:maxLine], maxLine
}

// underWay is a line under way without what was written over, once that is much. A mark may stand there until then.
func underWay(data []byte) []byte {
	if len(data) < maxLine {
		return data
	}
	frame := last(data)
	if bytes.HasSuffix(data, []byte("\r")) {
		return append(bytes.Clone(frame), '\r') // what comes next is written over it
	}
	return frame
}

// last is the last state of a line that was written over with carriage returns.
func last(line []byte) []byte {
	line = bytes.TrimRight(line, "\r")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		return line[i+1:]
	}
	return line
}

// Flush returns the lines that have no end, once nothing comes behind them.
func (r *Reader) Flush(at time.Time) []Item {
	var items []Item
	for i := range r.streams {
		if s := &r.streams[i]; len(s.rest) > 0 {
			items = r.line(items, s, s.rest, at)
			s.rest = nil
		}
	}
	return items
}

// Said is the line that an output has begun and not ended, without colours.
func (r *Reader) Said(stderr bool) string {
	s := r.stream(stderr)
	frame := last(s.rest)
	return console.Cell(safe(frame[:min(len(frame), maxSaid)], true))
}

func (r *Reader) stream(stderr bool) *stream {
	if stderr {
		return &r.streams[1]
	}
	return &r.streams[0]
}

// line adds what a line is.
func (r *Reader) line(items []Item, s *stream, raw []byte, at time.Time) []Item {
	switch m := markOf(raw); m.kind {
	case GroupBegin:
		items = append(items, Item{Kind: GroupBegin, Depth: len(r.groups), Text: m.title})
		if len(r.groups) < maxGroup {
			r.groups = append(r.groups, at)
		}
		return items
	case GroupEnd:
		n := len(r.groups)
		if n == 0 {
			return items
		}
		item := Item{Kind: GroupEnd, Depth: n - 1}
		if begun := r.groups[n-1]; !begun.IsZero() && !at.IsZero() {
			item.Took = at.Sub(begun)
		}
		r.groups = r.groups[:n-1]
		return append(items, item)
	case Remark:
		return append(items, Item{Kind: Remark, Depth: len(r.groups), Note: m.note})
	}
	text := s.colour + safe(last(raw), r.Colourless)
	s.colour = coloursAt(text)
	if s.colour != "" {
		text += "\x1b[0m"
	}
	return append(items, Item{Kind: Text, Depth: len(r.groups), Text: text})
}

// safe makes one line of a log safe for a terminal.
func safe(line []byte, colourless bool) string {
	if harmless(line) {
		return string(line)
	}
	var out bytes.Buffer
	w := console.Safe(&out)
	if colourless {
		w = console.Colourless(&out)
	}
	_, _ = w.Write(append(bytes.ReplaceAll(line, []byte("\r"), nil), '\n')) // the end of the line ends sequences that are torn
	return strings.ReplaceAll(strings.TrimRight(out.String(), "\n"), "\n", " ")
}

// harmless reports whether a line is nothing but printable ASCII and tabs, as most are.
func harmless(line []byte) bool {
	for _, c := range line {
		if (c < ' ' || c > '~') && c != '\t' {
			return false
		}
	}
	return true
}

// maxColours bounds the sequences that a line hands to the next one, in bytes.
const maxColours = 128

// coloursAt returns the sequences that hold at the end of a safe line.
func coloursAt(line string) string {
	held := ""
	for {
		i := strings.Index(line, "\x1b[")
		if i < 0 {
			return held
		}
		line = line[i:]
		end := strings.IndexByte(line, 'm')
		if end < 0 {
			return held
		}
		parameters := line[2:end]
		switch {
		case parameters == "" || strings.Trim(parameters, "0") == "":
			held = ""
		case strings.HasPrefix(parameters, "0;"):
			held = line[:end+1]
		case len(held)+end < maxColours:
			held += line[:end+1]
		}
		line = line[end+1:]
	}
}
