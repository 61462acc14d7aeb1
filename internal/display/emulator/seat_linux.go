package emulator

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
)

// A Seat is a terminal of the kernel before which somebody sits: what programs write to it is on an Emulator, and what is
// typed reaches them. It owns a goroutine, which Close joins.
type Seat struct {
	Program *os.File // what programs have as their terminal

	person *os.File
	ended  chan struct{}

	mu       sync.Mutex
	emulator *Emulator
	news     chan struct{} // closed and made anew whenever something comes
}

// Sit returns a new terminal of so many columns and rows. The caller closes it, after the programs have ended that have it.
func Sit(width, height int) (*Seat, error) {
	person, program, err := Pair(width, height)
	if err != nil {
		return nil, err
	}
	s := &Seat{Program: program, person: person, ended: make(chan struct{}), emulator: New(width, height), news: make(chan struct{})}
	go s.look()
	return s, nil
}

// look reads until nobody has the terminal any more.
func (s *Seat) look() {
	defer close(s.ended)
	data := make([]byte, 64<<10)
	for {
		n, err := s.person.Read(data)
		s.mu.Lock()
		_, _ = s.emulator.Write(data[:n]) // takes everything
		close(s.news)
		s.news = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// Type is what a person types.
func (s *Seat) Type(text string) error {
	_, err := s.person.WriteString(text)
	return err
}

// Resize gives the terminal another size.
func (s *Seat) Resize(width, height int) error {
	s.mu.Lock()
	s.emulator.Resize(width, height)
	s.mu.Unlock()
	return SetSize(s.person, width, height)
}

// With calls f with what is seen now.
func (s *Seat) With(f func(e *Emulator)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f(s.emulator)
}

// Until waits for the screen to be as it should be. The error has what was seen instead when ctx ended.
func (s *Seat) Until(ctx context.Context, what string, ok func(screen []string) bool) error {
	for {
		s.mu.Lock()
		screen, news := s.emulator.Screen(), s.news
		s.mu.Unlock()
		if ok(screen) {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("%s was not seen, but:\n%s", what, strings.Join(screen, "\n"))
		}
	}
}

// Leave waits until everything was read that programs have written, for which none of them may have the terminal any more.
func (s *Seat) Leave() error {
	err := s.Program.Close()
	<-s.ended
	return err
}

// Close takes the terminal away. It calls Leave where that was not done.
func (s *Seat) Close() error {
	err := s.Leave()
	if errors.Is(err, os.ErrClosed) {
		err = nil
	}
	return errors.Join(err, s.person.Close())
}
