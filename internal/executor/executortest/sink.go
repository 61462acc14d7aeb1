package executortest

import (
	"bytes"
	"sync"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Sink is an Output that keeps what it is given, and lets tests wait for it.
type Sink struct {
	mu     sync.Mutex
	change *sync.Cond
	out    map[forge.LogStream]*bytes.Buffer
	all    []any // []byte and forge.StepEvent, in order
	held   bool
	count  map[forge.LogStream]int
	drop   bool
}

// NewSink returns an empty sink.
func NewSink() *Sink {
	s := &Sink{out: map[forge.LogStream]*bytes.Buffer{}, count: map[forge.LogStream]int{}}
	for _, stream := range []forge.LogStream{forge.LogStdout, forge.LogStderr} {
		s.out[stream] = &bytes.Buffer{}
	}
	s.change = sync.NewCond(&s.mu)
	return s
}

// Write takes output, as soon as it is not held.
func (s *Sink) Write(stream forge.LogStream, p []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.held {
		s.change.Wait()
	}
	s.count[stream] += len(p)
	if !s.drop {
		s.out[stream].Write(p)
		s.all = append(s.all, bytes.Clone(p))
	}
	s.change.Broadcast()
}

// Event takes an event.
func (s *Sink) Event(e forge.StepEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, e)
	s.change.Broadcast()
}

// Hold makes every Write wait from now on, or lets them go on.
func (s *Sink) Hold(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	s.change.Broadcast()
}

// Drop makes the sink count the bytes and keep none.
func (s *Sink) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop = true
}

// Text returns what came on a stream so far.
func (s *Sink) Text(stream forge.LogStream) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out[stream].String()
}

// Count returns how many bytes came on a stream so far.
func (s *Sink) Count(stream forge.LogStream) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count[stream]
}

// Await waits until standard output contains text.
func (s *Sink) Await(text string) {
	s.await(func() bool { return bytes.Contains(s.out[forge.LogStdout].Bytes(), []byte(text)) })
}

// AwaitCount waits for as many bytes of standard output.
func (s *Sink) AwaitCount(n int) { s.await(func() bool { return s.count[forge.LogStdout] >= n }) }

func (s *Sink) await(met func() bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for !met() {
		s.change.Wait()
	}
}

// Events returns the events so far.
func (s *Sink) Events() []forge.StepEvent {
	s.mu.Lock()
	defer s.mu.Unlock()
	var events []forge.StepEvent
	for _, item := range s.all {
		if e, ok := item.(forge.StepEvent); ok {
			events = append(events, e)
		}
	}
	return events
}

// Story returns output and events in their order: the bytes of either stream as strings, joined where nothing stands
// between them.
func (s *Sink) Story() []any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var story []any
	for _, item := range s.all {
		p, ok := item.([]byte)
		if !ok {
			story = append(story, item)
			continue
		}
		if n := len(story); n > 0 {
			if last, ok := story[n-1].(string); ok {
				story[n-1] = last + string(p)
				continue
			}
		}
		story = append(story, string(p))
	}
	return story
}
