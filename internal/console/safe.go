package console

import (
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSequence bounds a control sequence; a longer one is dropped to its end.
const maxSequence = 64

// SafeWriter passes a workload's output to a terminal without what could steer the terminal: titles, links, the
// clipboard, moves of the cursor, questions to it, and characters that turn the direction of writing. Text, tabs, line
// ends and colours pass. What is held back at the end of a piece, because it is not complete, goes on with the next one.
type SafeWriter struct {
	w        io.Writer
	state    safeState
	sequence []byte // of a colour, so far
	rest     []byte // the beginning of a character
	out      []byte
	coloured bool
	plain    bool // colours do not pass either
}

type safeState uint8

const (
	safeText      safeState = 0
	safeEscape    safeState = 1 // after ESC
	safeIntro     safeState = 2 // after ESC and an intermediate byte, as in the choice of a character set
	safeCSI       safeState = 3 // in a control sequence
	safeString    safeState = 4 // in a string that ends with BEL or ESC \
	safeStringEsc safeState = 5 // after ESC in one
)

// Safe returns a writer that makes what goes to w safe for a terminal.
func Safe(w io.Writer) *SafeWriter { return &SafeWriter{w: w} }

// Colourless is Safe for those who want no colours at all (NO_COLOR).
func Colourless(w io.Writer) *SafeWriter { return &SafeWriter{w: w, plain: true} }

// Write writes what is safe of p.
func (s *SafeWriter) Write(p []byte) (int, error) {
	s.out = s.out[:0]
	data := p
	if len(s.rest) > 0 {
		data = append(s.rest, p...)
		s.rest = nil
	}
	for len(data) > 0 {
		if !utf8.FullRune(data) {
			s.rest = append([]byte(nil), data...)
			break
		}
		r, size := utf8.DecodeRune(data)
		data = data[size:]
		s.step(r)
	}
	if len(s.out) == 0 {
		return len(p), nil
	}
	if _, err := s.w.Write(s.out); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close ends colours that are still on. It does not close what is below.
func (s *SafeWriter) Close() error {
	if !s.coloured {
		return nil
	}
	s.coloured = false
	_, err := io.WriteString(s.w, "\x1b[0m")
	return err
}

// step takes one character. A byte that is none comes as utf8.RuneError.
func (s *SafeWriter) step(r rune) {
	switch s.state {
	case safeText:
		s.text(r)
	case safeEscape:
		s.escape(r)
	case safeIntro:
		if r >= 0x30 && r <= 0x7e || r < 0x20 {
			s.state = safeText
		}
	case safeCSI:
		s.csi(r)
	case safeString:
		s.inString(r)
	case safeStringEsc:
		s.state = safeString
		if r == '\\' {
			s.state = safeText
		} else {
			s.inString(r)
		}
	}
}

func (s *SafeWriter) text(r rune) {
	switch {
	case r == 0x1b:
		s.state = safeEscape
	case r == 0x9b:
		s.state, s.sequence = safeCSI, s.sequence[:0]
	case r == 0x90 || r == 0x98 || r == 0x9d || r == 0x9e || r == 0x9f:
		s.state = safeString
	case r == '\n' || r == '\t' || r == '\r':
		s.out = append(s.out, byte(r))
	case unicode.IsControl(r) || turns(r): // dropped
	default:
		s.out = utf8.AppendRune(s.out, r)
	}
}

func (s *SafeWriter) escape(r rune) {
	switch {
	case r == '[':
		s.state, s.sequence = safeCSI, s.sequence[:0]
	case r == ']' || r == 'P' || r == 'X' || r == '^' || r == '_':
		s.state = safeString
	case r >= 0x20 && r <= 0x2f:
		s.state = safeIntro
	case r == 0x1b: // the earlier one meant nothing
	case r == '\n':
		s.state = safeText
		s.out = append(s.out, '\n')
	default:
		s.state = safeText
	}
}

// csi gathers a control sequence and lets it pass if it only sets colours.
func (s *SafeWriter) csi(r rune) {
	switch {
	case r == 0x1b:
		s.state = safeEscape
	case r == '\n': // torn: the terminal would carry it out in the middle
		s.state = safeText
		s.out = append(s.out, '\n')
	case r >= 0x40 && r <= 0x7e:
		s.state = safeText
		if r == 'm' && !s.plain && len(s.sequence) < maxSequence && strings.Trim(string(s.sequence), "0123456789;:") == "" {
			s.out = append(append(append(s.out, "\x1b["...), s.sequence...), 'm')
			s.coloured = true
		}
	case len(s.sequence) < maxSequence && r < utf8.RuneSelf:
		s.sequence = append(s.sequence, byte(r))
	case r >= utf8.RuneSelf:
		s.sequence = append(s.sequence[:0], make([]byte, maxSequence)...) // never a colour
	}
}

// inString drops a string until it ends. A line's end ends it too, so that a torn one cannot swallow the rest of a log.
func (s *SafeWriter) inString(r rune) {
	switch r {
	case 0x1b:
		s.state = safeStringEsc
	case 0x07, 0x9c:
		s.state = safeText
	case '\n':
		s.state = safeText
		s.out = append(s.out, '\n')
	}
}

// turns reports whether a character changes the direction of the writing around it, so that text reads other than it is.
func turns(r rune) bool { return r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 }

// Plain makes one piece of text from elsewhere safe for a line of ours: control characters become spaces.
func Plain(text string) string {
	clean := func(r rune) rune {
		if r == '\n' {
			return r
		}
		if unicode.IsControl(r) || turns(r) {
			return ' '
		}
		return r
	}
	return strings.Map(clean, strings.ToValidUTF8(text, "\ufffd"))
}

// Cell is Plain on one line.
func Cell(text string) string { return strings.ReplaceAll(Plain(text), "\n", " ") }
