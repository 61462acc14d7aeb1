// Package redact takes secrets out of a stream of bytes.
//
// A Redactor is built once from the values of an attempt's secrets. For each value it knows the forms in which programs
// usually print it: as it is, line by line, with its line breaks turned into spaces or escapes, the strings within a JSON
// document, and the encodings base64, hexadecimal and URL. Each output has a Stream of its own, which replaces every run of
// bytes that any form covers with Mask. Where forms overlap all of them are covered, so a short secret never shows the rest
// of a longer one. The streams share the forms and nothing else.
//
// Everything else passes byte for byte: no line, no character set is assumed. A Stream holds back only what may be the
// beginning of a form, and never more than the longest form less one byte. Time is linear in the bytes written.
//
// What it refuses: a value with fewer than MinSecret bytes besides white space is not masked, because that would mask most
// of an ordinary log, and Unmasked names it so that somebody can be warned. It is no proof that nothing leaks: a program
// that wants to can print a secret in a form that nobody thought of (07§78).
//
// It starts no goroutine.
package redact

import (
	"fmt"
	"io"
)

// Mask stands where a secret was.
const Mask = "***"

// Bounds.
const (
	// MinSecret is the least number of bytes, white space around them not counted, that a value must have to be masked.
	MinSecret = 3
	// MinPart is the least number of bytes of a line of a value, or of a string within a JSON document, that is masked
	// where it stands alone.
	MinPart = 8
	// MaxForms bounds the bytes of all forms together, and with them the memory of a Redactor: about 24 bytes for each. The
	// values themselves come first, then their parts, then their encodings.
	MaxForms = 4 << 20
	// MaxWrite is the most that a Stream hands to its writer in one call.
	MaxWrite = 256 << 10
)

// Redactor knows the forms of a set of secrets. It never changes, so any number of streams may use it at once.
type Redactor struct {
	forms    *automaton // nil where there is nothing to mask
	unmasked []int
}

// New returns a redactor for values. It keeps what it needs of them; the caller may wipe its own.
func New(values ...[]byte) *Redactor {
	r := &Redactor{}
	c := collector{trie: newAutomaton(), room: MaxForms}
	for i, value := range values {
		if trimmed := trim(value); len(trimmed) < MinSecret || !c.add(trimmed) {
			r.unmasked = append(r.unmasked, i)
		}
	}
	for _, value := range values {
		c.parts(value)
	}
	for _, value := range values {
		c.encodings(value)
	}
	if c.trie.longest > 0 {
		c.trie.link()
		r.forms = c.trie
	}
	return r
}

// Unmasked returns the places, in the arguments of New, of the values that are not masked: those that are too short, and
// those for which there was no room below MaxForms.
func (r *Redactor) Unmasked() []int { return r.unmasked }

// Format prints nothing of the values, for every verb.
func (r *Redactor) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "[redactor]") }

// Redact returns a copy of text without the secrets, for a text that is whole.
func (r *Redactor) Redact(text string) string {
	var out sliceWriter
	s := r.Stream(&out)
	_, _ = s.Write([]byte(text)) // a sliceWriter takes everything
	_ = s.Flush()
	return string(out)
}

// Stream returns a stream that writes to w what is left of what is written to it. A stream has one user at a time.
func (r *Redactor) Stream(w io.Writer) *Stream { return &Stream{forms: r.forms, w: w} }

type sliceWriter []byte

func (w *sliceWriter) Write(p []byte) (int, error) {
	*w = append(*w, p...)
	return len(p), nil
}
