package cli

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
)

// A logView shows the log of one attempt, or what is left of it by steps and lines. All output is its result, also what
// the job wrote to standard error.
type logView struct {
	printer
	target  *target
	o       *logOptions
	within  bool // the step that runs is one to show
	known   bool // a step was one to show
	names   []string
	split   bool // the output is shown line by line
	open    map[string]*openLine
	last    []logLine // the last ones, where only those are shown
	matches int
}

// openLine is a line of one stream whose end has not come.
type openLine struct {
	at   *api.Time // when it began
	seq  uint64
	text []byte
}

// logLine is a line that waits to be shown.
type logLine struct {
	openLine
	stream string
}

func (a *app) logView(t *target, o *logOptions) *logView {
	v := &logView{printer: a.printer(o.raw), target: t, o: o, open: map[string]*openLine{}, within: o.step == "" && t.steps == nil}
	v.stderr = v.stdout
	v.of = t.of
	filtered := o.search != "" || o.tail > 0 && o.lines()
	v.split = filtered || !o.raw && a.output != "json" && (t.of != "" || o.timestamps)
	return v
}

// event shows one event, if it is of what is shown.
func (v *logView) event(e api.Event) error {
	switch e.Name {
	case api.EventStepStarted, api.EventStepFinished:
		return v.stepped(e)
	case api.EventOutput:
		if !v.within {
			return nil
		}
		if v.split {
			return v.lines(e)
		}
	case api.EventEnd:
		if err := v.finish(); err != nil {
			return err
		}
	case api.EventNotice, api.EventAnnotation:
		if !v.within || v.o.search != "" {
			return nil
		}
	}
	return v.printer.event(e)
}

// stepped follows the steps.
func (v *logView) stepped(e api.Event) error {
	var step api.LogStep
	if err := e.Decode(&step); err != nil {
		return err
	}
	chosen := v.chosen(&step)
	if e.Name == api.EventStepStarted && step.Name != "" {
		v.names = append(v.names, step.Name)
	}
	if chosen && e.Name == api.EventStepFinished {
		if err := v.flush(); err != nil {
			return err
		}
	}
	all := v.o.step == "" && v.target.steps == nil
	v.within = all || chosen && e.Name == api.EventStepStarted
	v.known = v.known || chosen
	if chosen && v.o.search == "" {
		return v.printer.event(e)
	}
	return nil
}

// chosen reports whether a step is one that is shown.
func (v *logView) chosen(step *api.LogStep) bool {
	switch {
	case v.target.steps != nil:
		return slices.Contains(v.target.steps, step.Step)
	case v.o.step == "":
		return true
	}
	return step.Name == v.o.step || strconv.Itoa(int(step.Step)+1) == v.o.step
}

// unknownStep says that an attempt has no step of a name, once its whole log was seen.
func (v *logView) unknownStep(name string) error {
	if name == "" || v.known || v.of != "" {
		return nil
	}
	if len(v.names) == 0 {
		return console.Usage("no step %q has begun in attempt %s", name, v.target.attempt.ID)
	}
	return console.Usage("no step %q has begun in attempt %s; there are %q", name, v.target.attempt.ID, v.names)
}

// lines takes output apart. A line that has no end yet waits for it, at most maxLine bytes of it.
func (v *logView) lines(e api.Event) error {
	var o api.LogOutput
	if err := e.Decode(&o); err != nil {
		return err
	}
	open := v.open[o.Stream]
	if open == nil {
		open = &openLine{}
		v.open[o.Stream] = open
	}
	for data := o.Data(); len(data) > 0; {
		if len(open.text) == 0 {
			open.at, open.seq = o.At, o.Seq
		}
		i := bytes.IndexByte(data, '\n')
		n := i
		if i < 0 {
			n = len(data)
		}
		if room := maxLine - len(open.text); n > room {
			i, n = -1, room
		}
		open.text = append(open.text, data[:n]...)
		data = data[n:]
		if i >= 0 {
			data = data[1:]
		} else if len(open.text) < maxLine {
			return nil
		}
		if err := v.line(logLine{*open, o.Stream}); err != nil {
			return err
		}
		open.text = nil
	}
	return nil
}

// line takes a line up, if it has what is looked for.
func (v *logView) line(l logLine) error {
	if !v.o.holds(l.text) {
		return nil
	}
	v.matches++
	if v.o.tail == 0 {
		return v.write(l)
	}
	if v.last = append(v.last, l); len(v.last) > 2*v.o.tail { // seldom, and not for each line
		v.last = slices.Clone(v.last[len(v.last)-v.o.tail:])
	}
	return nil
}

// write shows a line.
func (v *logView) write(l logLine) error {
	if v.app.output == "json" {
		return v.app.print().Event(shown{Job: v.of, Name: api.EventOutput, Data: api.OutputOf(l.seq, l.stream, l.at, l.text)})
	}
	return v.print(l.at, l.text)
}

func (v *logView) print(at *api.Time, text []byte) error {
	line := make([]byte, 0, len(text)+64)
	if v.of != "" {
		line = append(append(line, v.of...), " | "...)
	}
	if v.o.timestamps && at != nil {
		line = at.UTC().AppendFormat(line, "2006-01-02T15:04:05.000Z ")
	}
	line = append(append(line, text...), '\n')
	_, err := v.stdout.Write(line)
	return err
}

// match shows a line in which the daemon has found something.
func (v *logView) match(m *api.LogMatch) error {
	if v.app.output == "json" {
		if v.of == "" {
			return v.app.print().Event(m)
		}
		return v.app.print().Event(shown{Job: v.of, Name: "match", Data: m})
	}
	return v.print(m.At, m.Data())
}

// flush shows what has no end of its line.
func (v *logView) flush() error {
	streams := make([]string, 0, len(v.open))
	for stream, open := range v.open {
		if len(open.text) > 0 {
			streams = append(streams, stream)
		}
	}
	slices.SortFunc(streams, func(a, b string) int { return int(v.open[a].seq) - int(v.open[b].seq) })
	for _, stream := range streams {
		open := v.open[stream]
		if err := v.line(logLine{*open, stream}); err != nil {
			return err
		}
		open.text = nil
	}
	return nil
}

// finish shows what is left once everything has come.
func (v *logView) finish() error {
	if err := v.flush(); err != nil {
		return err
	}
	last := v.last[max(0, len(v.last)-max(v.o.tail, 0)):]
	v.last = nil
	for _, l := range last {
		if err := v.write(l); err != nil {
			return err
		}
	}
	return nil
}
