package lookup

// Answer is what a packet is answered with.
func Answer(s *Server, packet []byte) []byte { return s.answer(packet) }
