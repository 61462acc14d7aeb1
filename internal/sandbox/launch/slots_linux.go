package launch

// slots gives each sandbox a number that no other one has while it lives. A number rests as long as it can before it is given
// again.
type slots struct {
	used []bool
	next int
}

func newSlots(n int) *slots { return &slots{used: make([]bool, n)} }

// take returns a free number, or false.
func (s *slots) take() (int, bool) {
	for range s.used {
		n := s.next
		s.next = (s.next + 1) % len(s.used)
		if !s.used[n] {
			s.used[n] = true
			return n, true
		}
	}
	return 0, false
}

func (s *slots) free(n int) { s.used[n] = false }
