package lookup

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"time"
)

// packets answers over UDP until the socket is closed.
func (s *Server) packets() {
	packet := make([]byte, maxQuestion)
	for {
		n, from, err := s.udp.ReadFrom(packet)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			continue // an answer that nobody took
		}
		if reply := s.answer(packet[:n]); reply != nil {
			// A resolver that is gone has no use for its answer; one that waits asks again.
			_, _ = s.udp.WriteTo(reply, from)
		}
	}
}

// connections takes connections over TCP until the socket is closed.
func (s *Server) connections() {
	for {
		c, err := s.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || !s.admit(c) {
			continue
		}
		s.work.Go(func() { s.connection(c) })
	}
}

// admit counts a connection, or closes it if there are too many.
func (s *Server) admit(c net.Conn) bool {
	s.mu.Lock()
	ok := !s.closed && len(s.conns) < MaxConnections
	if ok {
		s.conns[c] = true
	}
	s.mu.Unlock()
	if !ok {
		_ = c.Close() // its peer finds out, which is all that closing is for
	}
	return ok
}

// connection answers questions, each behind its length, until the peer ends or says nothing for a while.
func (s *Server) connection(c net.Conn) {
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		s.mu.Unlock()
		_ = c.Close()
	}()
	for {
		if err := s.exchange(c); err != nil {
			return // there is nobody to tell
		}
	}
}

var errNoQuestion = errors.New("not a question")

func (s *Server) exchange(c net.Conn) error {
	if err := c.SetDeadline(time.Now().Add(maxIdle)); err != nil {
		return err
	}
	var length [2]byte
	if _, err := io.ReadFull(c, length[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint16(length[:])
	if n > maxQuestion {
		return errNoQuestion
	}
	packet := make([]byte, n)
	if _, err := io.ReadFull(c, packet); err != nil {
		return err
	}
	reply := s.answer(packet)
	if reply == nil {
		return errNoQuestion
	}
	_, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...))
	return err
}

// remember keeps a name unless it is known or there are enough.
func (s *Server) remember(name string) {
	name = printable(strings.ToLower(strings.TrimSuffix(name, ".")))
	s.mu.Lock()
	defer s.mu.Unlock()
	if name == "" || s.seen[name] || len(s.names) >= MaxNames {
		return
	}
	s.seen[name] = true
	s.names = append(s.names, name)
}

// printable leaves of a name what people can read: it goes into a log.
func printable(name string) string {
	letters := []byte(name)
	if len(letters) > MaxName {
		letters = letters[:MaxName]
	}
	for i, c := range letters {
		if !slices.Contains(nameBytes, c) {
			letters[i] = '?'
		}
	}
	return string(letters)
}

var nameBytes = []byte("abcdefghijklmnopqrstuvwxyz0123456789-_.*")
