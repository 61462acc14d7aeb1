package redact

import "io"

// Stream masks one output. The zero value is of no use; see Redactor.Stream.
type Stream struct {
	forms *automaton
	w     io.Writer

	at      int32  // node of the automaton after the last byte
	held    []byte // not handed on yet: may be the beginning of a form, or a part of one
	covered []span // of held, ascending, apart from each other
	masking bool   // the last byte handed on was covered, and its mask is out
	found   bool   // something was masked
	out     []byte // reused
}

// span is the bytes from and below to.
type span struct{ from, to int }

// Write takes bytes and hands on what can be told of. The error is the writer's; what was not taken then is lost.
func (s *Stream) Write(p []byte) (int, error) {
	if s.forms == nil {
		return s.pass(p)
	}
	start := len(s.held)
	s.held = append(s.held, p...)
	s.find(start)
	if err := s.release(s.settled()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// settled counts the bytes of held of which everything is known: those before the form that may have begun, and those
// behind them that are covered already, whatever comes.
func (s *Stream) settled() int {
	n := max(0, len(s.held)-int(s.forms.nodes[s.at].depth))
	for _, c := range s.covered {
		if c.from <= n {
			n = max(n, c.to)
		}
	}
	return n
}

// Flush hands on what was held back, because no more bytes come or because something else must stand behind them. A form
// whose end comes after a Flush is not found.
func (s *Stream) Flush() error {
	s.at = 0
	err := s.release(len(s.held))
	s.masking = false
	return err
}

// Masked reports whether something was masked of what was handed on.
func (s *Stream) Masked() bool { return s.found }

// pass hands p on as it is.
func (s *Stream) pass(p []byte) (int, error) {
	for done := 0; done < len(p); {
		n, err := s.w.Write(p[done:min(len(p), done+MaxWrite)])
		done += n
		if err != nil {
			return done, err
		}
	}
	return len(p), nil
}

// find runs the automaton over held from start, and notes what is covered.
func (s *Stream) find(start int) {
	a := s.forms
	for i := start; i < len(s.held); i++ {
		s.at = a.step(s.at, s.held[i])
		if n := int(a.nodes[s.at].match); n > 0 {
			s.cover(max(0, i+1-n), i+1) // what was settled earlier is masked already
		}
	}
}

// cover adds a span that ends behind all others, and joins those that it touches.
func (s *Stream) cover(from, to int) {
	for len(s.covered) > 0 {
		last := s.covered[len(s.covered)-1]
		if last.to < from {
			break
		}
		from = min(from, last.from)
		s.covered = s.covered[:len(s.covered)-1]
	}
	s.covered = append(s.covered, span{from, to})
}

// release hands on the first n bytes of held.
func (s *Stream) release(n int) error {
	s.out = s.out[:0]
	done, spans := 0, 0
	for _, c := range s.covered {
		if c.from >= n {
			break
		}
		s.plain(s.held[done:c.from])
		if !s.masking {
			s.out = append(s.out, Mask...)
			s.masking, s.found = true, true
		}
		done = min(c.to, n)
		if c.to <= n {
			spans++
		}
	}
	s.plain(s.held[done:n])
	s.forget(n, spans)
	_, err := s.pass(s.out)
	return err
}

func (s *Stream) plain(p []byte) {
	if len(p) > 0 {
		s.out = append(s.out, p...)
		s.masking = false
	}
}

// forget drops the first n bytes of held, which are wiped with the rest of what stood there, and the first spans.
func (s *Stream) forget(n, spans int) {
	left := copy(s.held, s.held[n:])
	clear(s.held[left:])
	s.held = s.held[:left]
	s.covered = append(s.covered[:0], s.covered[spans:]...)
	for i := range s.covered {
		s.covered[i].from = max(0, s.covered[i].from-n)
		s.covered[i].to -= n
	}
}
