package logs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Bounds of a search.
const (
	// MaxQuery is the most bytes that are looked for.
	MaxQuery = 256
	// MaxMatches is the most lines that one search returns.
	MaxMatches = 1000
	// MaxSearches is how many searches are carried out at once.
	MaxSearches = 4
	// MaxMatchText is the most that is shown of a line.
	MaxMatchText = 1 << 10
	// searchBytes is about how much of a log one search looks at; its caller goes on from where it ended.
	searchBytes = 32 << 20
	// maxLine is the most that is remembered of a line that goes on in another frame. A longer one is looked at in parts, each
	// of which may match.
	maxLine = 64 << 10
	// maxHeld is how much of a log may stand between the parts of a line, because another stream was read meanwhile.
	maxHeld = searchBytes / 4
)

// ErrQuery says that what is looked for, or from where on, makes no sense.
var ErrQuery = errors.New("logs: not a query")

// Query is what is looked for.
type Query struct {
	Text       string // not empty, without a line end
	IgnoreCase bool
	From       Cursor
	Limit      int // of matches; 0 and more than MaxMatches are MaxMatches
}

// Cursor is how far a log was searched: for each stream of text the first byte that was not. The zero value is the
// beginning.
type Cursor [streams]Place

// streams is how many streams of text a log has: stdout, stderr and the agent's own words.
const streams = int(forge.LogAgent)

// From returns the cursor of everything from a frame on.
func From(seq forge.LogSeq) (c Cursor) {
	for i := range c {
		c[i].Seq = seq
	}
	return c
}

// String implements fmt.Stringer.
func (c Cursor) String() string {
	var parts []string
	for _, p := range c {
		parts = append(parts, fmt.Sprintf("%d.%d", p.Seq, p.Skip))
	}
	return strings.Join(parts, "-")
}

// ParseCursor reads what String wrote.
func ParseCursor(text string) (c Cursor, err error) {
	parts := strings.Split(text, "-")
	if len(parts) != len(c) {
		return c, ErrQuery
	}
	for i, part := range parts {
		seq, skip, _ := strings.Cut(part, ".")
		n, seqErr := strconv.ParseUint(seq, 10, 63)
		m, skipErr := strconv.ParseUint(skip, 10, 17)
		if seqErr != nil || skipErr != nil || m > forge.MaxLogPayload {
			return c, ErrQuery
		}
		c[i] = Place{forge.LogSeq(n), int(m)}
	}
	return c, nil
}

// first is the first frame that was not searched.
func (c Cursor) first() forge.LogSeq {
	first := c[0].Seq
	for _, p := range c[1:] {
		first = min(first, p.Seq)
	}
	return max(first, 1)
}

// Match is a line in which the text was found, once for each line.
type Match struct {
	Stream forge.LogStream
	Time   forge.WallTime // of the frame in which the match ends
	Place  Place          // of the match's first byte
	Text   []byte         // of the line: the match, and as much around it as there is room for
	Start  int            // of the match in Text
	End    int
}

// Found is what a search has found.
type Found struct {
	Matches []Match // in the order in which their lines end
	Next    Cursor  // from where on to search next
	Done    bool    // nothing more is stored
	Bytes   uint64  // that were looked at
	Sealed  bool
}

// Search looks for a text in the lines of a log. It looks at a bounded part, and says where to go on: a match is found in
// one part or another, whatever frame it begins in, unless its line is longer than 64 KiB or has megabytes of other
// output in its middle. Lines of each stream are put together by themselves.
func (s *Store) Search(ctx context.Context, attempt forge.AttemptID, q Query) (Found, error) {
	find, err := q.finder()
	if err != nil {
		return Found{}, err
	}
	select {
	case s.searching <- struct{}{}:
		defer func() { <-s.searching }()
	case <-ctx.Done():
		return Found{}, context.Cause(ctx)
	}
	l, err := s.use(ctx, attempt)
	if err != nil {
		return Found{}, err
	}
	defer s.done(l)
	if q.Limit <= 0 || q.Limit > MaxMatches {
		q.Limit = MaxMatches
	}
	return newSearch(find, q).run(ctx, l, q.From.first())
}

// finder returns what finds the first match in some bytes, as the pair of its ends, or nil.
func (q *Query) finder() (func([]byte) []int, error) {
	if q.Text == "" || len(q.Text) > MaxQuery || strings.Contains(q.Text, "\n") {
		return nil, fmt.Errorf("%w: what is looked for has 1 to %d bytes and no line end", ErrQuery, MaxQuery)
	}
	if q.IgnoreCase && isASCII(q.Text) {
		return foldASCII(q.Text), nil
	}
	if q.IgnoreCase {
		if !utf8.ValidString(q.Text) {
			return nil, fmt.Errorf("%w: what is no UTF-8 has no case to ignore", ErrQuery)
		}
		return regexp.MustCompile("(?i:" + regexp.QuoteMeta(q.Text) + ")").FindIndex, nil
	}
	text := []byte(q.Text)
	return func(b []byte) []int {
		if i := bytes.Index(b, text); i >= 0 {
			return []int{i, i + len(text)}
		}
		return nil
	}, nil
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// foldASCII finds a text in either case, much faster than a regular expression does.
func foldASCII(text string) func([]byte) []int {
	want := []byte(strings.ToLower(text))
	var lower []byte
	return func(b []byte) []int {
		lower = append(lower[:0], b...)
		for i, c := range lower {
			if 'A' <= c && c <= 'Z' {
				lower[i] = c + 'a' - 'A'
			}
		}
		if i := bytes.Index(lower, want); i >= 0 {
			return []int{i, i + len(want)}
		}
		return nil
	}
}

// search is one search under way.
type search struct {
	find  func([]byte) []int
	most  int // matches
	keep  int // bytes of a part of a line in which nothing was found, for the next part
	lines [streams]line
	found Found
}

// line is what was read of a line that has not ended.
type line struct {
	stream forge.LogStream
	bytes  []byte
	pieces []piece // in order; not empty unless bytes is
	since  uint64  // how much had been looked at when it began
	time   forge.WallTime
	next   Place // the first byte behind it that was not looked at
	within bool  // that is within a frame that was read, because the search was full
}

// piece says where bytes of a line come from.
type piece struct {
	at    int // in the line
	place Place
}

func newSearch(find func([]byte) []int, q Query) *search {
	s := &search{find: find, most: q.Limit, keep: 4 * len(q.Text)} // the longest that a letter is in another case
	for i := range s.lines {
		s.lines[i] = line{stream: forge.LogStream(i + 1), next: q.From[i]}
	}
	return s
}

func (s *search) full() bool { return len(s.found.Matches) >= s.most }

func (s *search) run(ctx context.Context, l *log, from forge.LogSeq) (Found, error) {
	info := l.info()
	c := l.cursor(from)
	defer c.rest()
	for c.seq < info.Next && !s.full() && s.found.Bytes < searchBytes {
		if ctx.Err() != nil {
			return Found{}, context.Cause(ctx)
		}
		f, err := c.next()
		if err != nil {
			return Found{}, err
		}
		s.found.Bytes += uint64(len(f.Bytes))
		if isText(f.Stream) {
			s.frame(f)
		}
	}
	s.found.Sealed = info.Sealed
	s.found.Done = c.seq >= info.Next && !s.full()
	for i := range s.lines {
		s.found.Next[i] = s.finish(&s.lines[i], c.seq)
	}
	return s.found, nil
}

// frame looks at the lines of one frame, as far as they were not looked at.
func (s *search) frame(f forge.LogFrame) {
	w := &s.lines[f.Stream-1]
	if f.Seq < w.next.Seq {
		return
	}
	at := 0
	if f.Seq == w.next.Seq {
		at = min(w.next.Skip, len(f.Bytes))
	}
	w.time = f.Time
	for at < len(f.Bytes) && !s.full() {
		if len(w.bytes) == 0 {
			at = s.ahead(w, f, at)
			continue
		}
		end := len(f.Bytes)
		i := bytes.IndexByte(f.Bytes[at:], '\n')
		if i >= 0 {
			end = at + i
		}
		s.hold(w, f, at, end)
		if at = end; i >= 0 {
			at++
			s.look(w)
			w.clear()
		}
	}
	w.within = at < len(f.Bytes)
	if w.next = (Place{Seq: f.Seq + 1}); w.within {
		w.next = Place{f.Seq, at}
	}
}

// ahead looks at lines that begin and end in one frame, up to the first that matches, and holds the one that has no end in it. It
// returns how far it came.
func (s *search) ahead(w *line, f forge.LogFrame, at int) int {
	b := f.Bytes[at:]
	match := s.find(b)
	if match == nil {
		s.hold(w, f, at+bytes.LastIndexByte(b, '\n')+1, len(f.Bytes))
		return len(f.Bytes)
	}
	begin := bytes.LastIndexByte(b[:match[0]], '\n') + 1
	end := bytes.IndexByte(b[match[1]:], '\n')
	if end < 0 {
		s.hold(w, f, at+begin, len(f.Bytes))
		return len(f.Bytes)
	}
	end += match[1]
	s.add(w, b[begin:end], match[0]-begin, match[1]-begin, Place{f.Seq, at + match[0]})
	return at + end + 1
}

// hold puts bytes of a frame behind those that are held of a line. What is too long is looked at in parts.
func (s *search) hold(w *line, f forge.LogFrame, from, to int) {
	for from < to {
		if len(w.bytes) == 0 {
			w.since = s.found.Bytes
		}
		n := min(to-from, maxLine-len(w.bytes))
		w.pieces = append(w.pieces, piece{len(w.bytes), Place{f.Seq, from}})
		w.bytes = append(w.bytes, f.Bytes[from:from+n]...)
		if from += n; len(w.bytes) < maxLine {
			return
		}
		if s.look(w) {
			w.clear()
		} else {
			w.cut(s.keep)
			w.since = s.found.Bytes
		}
	}
}

// look looks at what is held of a line, and reports whether it matches.
func (s *search) look(w *line) bool {
	match := s.find(w.bytes)
	if match == nil {
		return false
	}
	s.add(w, w.bytes, match[0], match[1], w.placeOf(match[0]))
	return true
}

// add notes a match within a line.
func (s *search) add(w *line, text []byte, start, end int, at Place) {
	from := max(0, min(start-(MaxMatchText-(end-start))/2, len(text)-MaxMatchText))
	to := min(len(text), from+MaxMatchText)
	for from < start && from > 0 && !utf8.RuneStart(text[from]) {
		from++
	}
	for to > end && to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	s.found.Matches = append(s.found.Matches, Match{
		Stream: w.stream, Time: w.time, Place: at, Text: bytes.Clone(text[from:to]), Start: start - from, End: end - from,
	})
}

// finish returns where the next search goes on with a line that has not ended.
func (s *search) finish(w *line, next forge.LogSeq) Place {
	held := len(w.bytes) > 0 && s.found.Bytes-w.since > maxHeld // else a search could begin at the same place for ever
	switch {
	case len(w.bytes) > 0 && s.full():
		s.found.Done = false
	case len(w.bytes) > 0 && (s.found.Done || held) && (s.look(w) || held || s.found.Sealed):
		w.clear()
	}
	switch {
	case len(w.bytes) > 0:
		return w.pieces[0].place
	case w.within:
		return w.next
	default:
		return Place{Seq: max(next, w.next.Seq)}
	}
}

func (w *line) clear() { w.bytes, w.pieces = w.bytes[:0], w.pieces[:0] }

// cut forgets all but the last bytes.
func (w *line) cut(keep int) {
	from := len(w.bytes) - keep
	place, i := w.placeOf(from), w.pieceOf(from)
	w.pieces = append([]piece{{0, place}}, w.pieces[i+1:]...)
	for i := range w.pieces[1:] {
		w.pieces[i+1].at -= from
	}
	w.bytes = append(w.bytes[:0], w.bytes[from:]...)
}

// placeOf says where a byte of the line comes from.
func (w *line) placeOf(at int) Place {
	p := w.pieces[w.pieceOf(at)]
	return Place{p.place.Seq, p.place.Skip + at - p.at}
}

func (w *line) pieceOf(at int) int {
	i := len(w.pieces) - 1
	for w.pieces[i].at > at {
		i--
	}
	return i
}
