package redact

import (
	"bytes"
	"testing"
)

// naive masks the forms of an automaton by looking for each of them everywhere.
func naive(forms [][]byte, text []byte) []byte {
	covered := make([]bool, len(text))
	for _, form := range forms {
		for i := range text {
			if len(form) > 0 && bytes.HasPrefix(text[i:], form) {
				for j := range form {
					covered[i+j] = true
				}
			}
		}
	}
	var out []byte
	for i, b := range text {
		switch {
		case !covered[i]:
			out = append(out, b)
		case i == 0 || !covered[i-1]:
			out = append(out, Mask...)
		}
	}
	return out
}

// FuzzAStreamMasksWhatANaiveSearchFinds splits forms at commas, so that short alphabets make them overlap, and the text
// into pieces of step bytes.
func FuzzAStreamMasksWhatANaiveSearchFinds(f *testing.F) {
	f.Add([]byte("abc,abcdef,cde"), []byte("xabcdefabcabcdecdef"), uint8(3))
	f.Add([]byte("aa,aaa,aba"), []byte("aaaaabaaabababa"), uint8(1))
	f.Add([]byte("\x00\xff,\xff"), []byte("\x00\xff\xff\x00"), uint8(2))
	f.Fuzz(func(t *testing.T, list, text []byte, step uint8) {
		forms := bytes.Split(list, []byte(","))
		a := newAutomaton()
		for _, form := range forms {
			if len(form) > 0 {
				a.insert(form)
			}
		}
		if a.longest == 0 || len(text)*len(list) > 1<<20 {
			return
		}
		a.link()
		var out sliceWriter
		s := (&Redactor{forms: a}).Stream(&out)
		for rest := text; len(rest) > 0; {
			n := min(len(rest), 1+int(step))
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			if len(s.held) >= a.longest {
				t.Fatalf("%d bytes are held back for forms of at most %d", len(s.held), a.longest)
			}
			rest = rest[n:]
		}
		if err := s.Flush(); err != nil {
			t.Fatal(err)
		}
		if want := naive(forms, text); !bytes.Equal(out, want) {
			t.Errorf("forms %q, text %q, step %d: %q, want %q", forms, text, step, []byte(out), want)
		}
	})
}
