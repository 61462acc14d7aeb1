package attempt

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/redact"
	"github.com/forgeyard/forgeyard/internal/runner/logspool"
)

// output takes what a workload says, masks its secrets and appends it to the log, all in the order in which it comes.
// It implements executor.Output.
type output struct {
	spool *logspool.Spool // nil: there is no log
	wall  func() forge.WallTime

	mu       sync.Mutex
	redactor *redact.Redactor
	streams  map[forge.LogStream]*redact.Stream // with redactor
}

func newOutput(spool *logspool.Spool, wall func() forge.WallTime) *output {
	return &output{spool: spool, wall: wall}
}

// redact masks values from here on. It is called before the first step runs.
func (o *output) redact(r *redact.Redactor) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.redactor = r
	o.streams = map[forge.LogStream]*redact.Stream{
		forge.LogStdout: r.Stream(o.to(forge.LogStdout)), forge.LogStderr: r.Stream(o.to(forge.LogStderr)),
	}
}

// Write implements executor.Output. It waits while the log has no room: the lock keeps the order meanwhile, and whoever
// else wants to say something waits too.
func (o *output) Write(stream forge.LogStream, p []byte) {
	if o.spool == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if s := o.streams[stream]; s != nil {
		_, _ = s.Write(p) // the spool takes everything
		return
	}
	o.spool.Append(stream, p, o.wall())
}

// Event implements executor.Output.
func (o *output) Event(e forge.StepEvent) {
	if o.spool == nil {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	switch n := e.(type) {
	case forge.StepFinished:
		o.flushLocked() // what a step said stands before its end
	case forge.Notice:
		n.Text = fit(o.maskedLocked(n.Text))
		e = n
	case forge.Annotation:
		n.Text, n.File = fit(o.maskedLocked(n.Text)), o.maskedLocked(n.File)
		e = n
	}
	o.spool.Event(e, o.wall())
}

// masked is a text without the job's secrets.
func (o *output) masked(text string) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.maskedLocked(text)
}

func (o *output) maskedLocked(text string) string {
	if o.redactor == nil {
		return text
	}
	return o.redactor.Redact(text)
}

// notice tells the reader of the log something.
func (o *output) notice(level forge.AnnotationLevel, text string) {
	o.Event(forge.Notice{Level: level, Text: text})
}

// flush hands on what masking has held back, at the end.
func (o *output) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.flushLocked()
}

func (o *output) flushLocked() {
	for _, stream := range []forge.LogStream{forge.LogStdout, forge.LogStderr} {
		if s := o.streams[stream]; s != nil {
			_ = s.Flush() // likewise
		}
	}
}

func (o *output) to(stream forge.LogStream) io.Writer { return &appender{o, stream} }

// appender is where a masked stream goes.
type appender struct {
	o      *output
	stream forge.LogStream
}

func (a *appender) Write(p []byte) (int, error) {
	a.o.spool.Append(a.stream, p, a.o.wall())
	return len(p), nil
}

// fit makes a text one that a notice may have.
func fit(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	text = strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, text)
	if len(text) <= forge.MaxNotice {
		return text
	}
	text = text[:forge.MaxNotice]
	for !utf8.ValidString(text) {
		text = text[:len(text)-1]
	}
	return text
}
