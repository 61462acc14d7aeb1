package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Bounds of an event stream.
const (
	// KeepAlive is how often a daemon writes a comment into a stream that is silent.
	KeepAlive = 15 * time.Second
	// silence is how long a client waits for anything at all before it takes the stream for broken.
	silence = 3 * KeepAlive
	// maxEvent bounds one event in bytes.
	maxEvent = 2 << 20
	// The pauses between attempts to go on with a stream that broke.
	firstPause, longestPause = 250 * time.Millisecond, 5 * time.Second
)

// Event is one event of a stream.
type Event struct {
	ID   string
	Name string
	Data json.RawMessage
}

// Decode reads the event's data.
func (e Event) Decode(into any) error {
	if err := json.Unmarshal(e.Data, into); err != nil {
		return NewProblem(CodeUnreadableAnswer, "event %s: %v", e.Name, err)
	}
	return nil
}

// LogOptions says which part of a log is asked for.
type LogOptions struct {
	From   uint64 // the first frame; 0 and 1 are the beginning
	Tail   int    // only the last lines; not with From
	Follow bool   // go on until the log ends
}

func (o LogOptions) values() url.Values {
	v := url.Values{}
	if o.From > 0 {
		v.Set("from_seq", strconv.FormatUint(o.From, 10))
	}
	if o.Tail > 0 {
		v.Set("tail", strconv.Itoa(o.Tail))
	}
	if o.Follow {
		v.Set("follow", "true")
	}
	return v
}

// Log yields the events of an attempt's log, the last of them EventEnd where the log is at its end. A stream that breaks
// is taken up behind the last event that came. It ends after an error, which is a *Problem or the context's.
func (c *Client) Log(ctx context.Context, attempt string, o LogOptions) iter.Seq2[Event, error] {
	return c.events(ctx, call{method: http.MethodGet, path: one("attempts", attempt, "log"), query: o.values()})
}

// Watch yields the changes of a run and its jobs from its beginning on, the last of them EventEnd when it has ended.
func (c *Client) Watch(ctx context.Context, run string) iter.Seq2[Event, error] {
	return c.events(ctx, call{method: http.MethodGet, path: one("runs", run, "events")})
}

// events reads a stream until its end, connecting again whenever it breaks.
func (c *Client) events(ctx context.Context, r call) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		s := &stream{client: c, call: r, pause: firstPause}
		for {
			done, err := s.read(ctx, yield)
			if done {
				return
			}
			if err != nil && !again(err) {
				yield(Event{}, err)
				return
			}
			s.broke(err)
			if err := s.wait(ctx); err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// again reports whether a stream that ended with err is worth another try.
func again(err error) bool {
	var p *Problem
	if !errors.As(err, &p) {
		return false
	}
	return p.Code == CodeUnreachable || p.Code == CodeUnavailable || p.Status == http.StatusTooManyRequests
}

// stream is an event stream across its connections.
type stream struct {
	client *Client
	call   call
	last   string // id of the last event
	pause  time.Duration
	broken bool // whoever listens was told so
}

// broke tells once that the stream has broken. A connection that simply ends has no error.
func (s *stream) broke(why error) {
	if s.broken || s.client.options.Stream == nil {
		return
	}
	if why == nil {
		why = NewProblem(CodeUnreachable, "the stream broke off")
	}
	s.broken = true
	s.client.options.Stream(why)
}

// whole tells that a stream that broke goes on.
func (s *stream) whole() {
	if s.broken {
		s.broken = false
		s.client.options.Stream(nil)
	}
}

func (s *stream) wait(ctx context.Context) error {
	t := time.NewTimer(s.pause)
	defer t.Stop()
	s.pause = min(2*s.pause, longestPause)
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// read passes the events of one connection on. done says that nobody wants more.
func (s *stream) read(ctx context.Context, yield func(Event, error) bool) (done bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(silence, func() { cancel(errTimeout) })
	defer watchdog.Stop()

	r := s.call
	r.header = http.Header{"Accept": {TypeEvents}}
	if s.last != "" {
		r.header.Set(HeaderLastEventID, s.last)
	}
	answer, err := s.client.send(ctx, r)
	if err != nil {
		return false, err
	}
	defer func() { _ = answer.Body.Close() }()
	if !strings.HasPrefix(answer.Header.Get("Content-Type"), TypeEvents) {
		return false, NewProblem(CodeUnreadableAnswer, "%s is not an event stream", r.path)
	}
	s.whole()
	in := newEventReader(answer.Body, func() { watchdog.Reset(silence) })
	for {
		e, err := in.next()
		if err == io.EOF {
			return false, nil
		}
		if errors.Is(err, bufio.ErrTooLong) {
			return false, NewProblem(CodeUnreadableAnswer, "%s has an event of more than %d bytes", r.path, maxEvent)
		}
		if err != nil {
			return false, unreachable(ctx, err)
		}
		if e.ID != "" {
			s.last = e.ID
		}
		s.pause = firstPause
		if !yield(e, nil) || e.Name == EventEnd {
			return true, nil
		}
	}
}

// eventReader takes an event stream apart. An event that its end cuts off is none.
type eventReader struct {
	lines *bufio.Scanner
	heard func() // anything arrived
}

func newEventReader(r io.Reader, heard func()) *eventReader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxEvent)
	return &eventReader{lines: lines, heard: heard}
}

func (r *eventReader) next() (Event, error) {
	var e Event
	var data [][]byte
	for r.lines.Scan() {
		r.heard()
		line := r.lines.Bytes()
		if len(line) == 0 {
			if data == nil {
				e = Event{}
				continue
			}
			e.Data = bytes.Join(data, []byte("\n"))
			return e, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "id":
			e.ID = string(value)
		case "event":
			e.Name = string(value)
		case "data":
			data = append(data, bytes.Clone(value))
		}
	}
	if err := r.lines.Err(); err != nil {
		return Event{}, err
	}
	return Event{}, io.EOF
}
