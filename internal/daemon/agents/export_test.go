package agents

import "github.com/forgeyard/forgeyard/internal/forge"

// Advance makes the server's clock jump ahead, as that of a machine that slept.
func (s *Server) Advance(by forge.Instant) {
	s.call(func() {
		boot := s.boot
		s.boot = func() forge.Instant { return boot() + by }
	})
}
