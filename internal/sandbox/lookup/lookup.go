// Package lookup answers the resolvers of a sandbox that has no network: at once, that it will not, and remembers what was
// asked. A look-up then fails in a millisecond and not after a timer, and the attempt's log can say which name work wanted.
//
// It resolves nothing, forwards nothing, and keeps no more than a bounded number of bounded names. What it is sent comes from
// hostile work: it answers nothing but questions, never with more than it was sent, and takes few connections at a time, each
// for a short while.
//
// A Server has one goroutine per socket and one per connection; Close ends and joins them all.
package lookup

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

// Bounds.
const (
	MaxNames       = 32  // remembered between two calls of Names; later ones are not
	MaxName        = 253 // bytes of a name
	MaxConnections = 16  // at a time; others are closed at once
	maxQuestion    = 4096
	maxIdle        = 5 * time.Second // of a connection
)

// Address is where resolvers look by default.
const Address = "127.0.0.1:53"

// Server answers until it is closed. Its methods are safe for concurrent use.
type Server struct {
	udp  net.PacketConn
	tcp  net.Listener
	work sync.WaitGroup

	mu     sync.Mutex
	names  []string
	seen   map[string]bool
	conns  map[net.Conn]bool
	closed bool
}

// Listen answers UDP and TCP at an address, which must be one of loopback. With port 0 both get the same free one.
func Listen(address string) (*Server, error) {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("lookup: %q is not an address of loopback with a port", address)
	}
	udp, err := net.ListenPacket("udp", address)
	if err != nil {
		return nil, fmt.Errorf("lookup: listen: %w", err)
	}
	tcp, err := net.Listen("tcp", udp.LocalAddr().String())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lookup: listen: %w", err), udp.Close())
	}
	s := &Server{udp: udp, tcp: tcp, seen: map[string]bool{}, conns: map[net.Conn]bool{}}
	s.work.Go(s.packets)
	s.work.Go(s.connections)
	return s, nil
}

// Addr is where the server answers.
func (s *Server) Addr() string { return s.udp.LocalAddr().String() }

// Names returns the names asked for since the last call, each once, in the order of their first question, without the dot at
// their end and in lower case.
func (s *Server) Names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.names
	s.names = nil
	clear(s.seen)
	return names
}

// Close ends the server. It may be called again.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	err := errors.Join(s.udp.Close(), s.tcp.Close())
	for c := range s.conns {
		err = errors.Join(err, c.Close())
	}
	s.mu.Unlock()
	s.work.Wait()
	return err
}

// answer remembers a question and returns the refusal, or nil for what is no question.
func (s *Server) answer(packet []byte) []byte {
	var p dnsmessage.Parser
	head, err := p.Start(packet)
	if err != nil || head.Response || head.OpCode != 0 {
		return nil
	}
	question, err := p.Question()
	if err != nil {
		return nil
	}
	s.remember(question.Name.String())
	refusal := dnsmessage.NewBuilder(nil, dnsmessage.Header{
		ID: head.ID, Response: true, RecursionDesired: head.RecursionDesired, RCode: dnsmessage.RCodeRefused,
	})
	err = errors.Join(refusal.StartQuestions(), refusal.Question(question))
	message, finished := refusal.Finish()
	if err != nil || finished != nil {
		return nil
	}
	return message
}
