package display

import (
	"fmt"
	"strings"
	"time"
)

// Item draws a line of a log; ok is false where there is nothing to show.
func (s Style) Item(prefix string, i Item) (line string, ok bool) {
	prefix += strings.Repeat("  ", i.Depth)
	switch i.Kind {
	case GroupBegin:
		return prefix + s.paint(bold, s.sign("▾ ", "> ")+i.Text), true
	case GroupEnd:
		if i.Took < time.Second {
			return "", false
		}
		return prefix + s.paint(dim, s.sign("└ ", "< ")+Took(i.Took)), true
	case Remark:
		return prefix + s.Note(i.Note), true
	}
	return prefix + i.Text, true
}

// Note draws a remark on one line.
func (s Style) Note(n Note) string {
	colour := map[Level]string{Error: boldRed, Warning: yellow, Notice: bold}[n.Level]
	place := n.Place()
	if place != "" {
		place += ": "
	}
	return s.paint(colour, n.Level.String()+":") + " " + place + n.Text
}

// StepBegins is the heading of a step.
func (s Style) StepBegins(prefix string, number, of int, name string) string {
	count := ""
	if of > 1 {
		count = fmt.Sprintf("%d/%d ", number, of)
	}
	return prefix + s.paint(bold, s.sign("── ", "-- ")+count+name)
}

// StepEnds says how a step ended. Of one that was quick and good there is nothing to say.
func (s Style) StepEnds(prefix, name, why string, took time.Duration) (line string, ok bool) {
	if why != "" {
		return prefix + s.paint(red, s.sign("✗ ", "x ")+name+": "+why) + s.paint(dim, " ("+Took(took)+")"), true
	}
	if took < time.Second {
		return "", false
	}
	return prefix + s.paint(dim, s.sign("✓ ", "+ ")+name+" ("+Took(took)+")"), true
}

// JobEnds says how a job ended.
func (s Style) JobEnds(title string, state State, text string) string {
	colour := dim
	switch state {
	case Failed:
		colour = boldRed
	case Succeeded:
		colour = green
	}
	return s.paint(bold, title+": ") + s.paint(colour, text)
}

// RunEnds says how a run ended.
func (s Style) RunEnds(well bool, text string) string {
	if well {
		return s.paint("1;32", text)
	}
	return s.paint(boldRed, text)
}

// A Failure is a job that failed.
type Failure struct {
	Title string
	Step  string   // that failed; may be empty
	Why   string   // one sentence
	Lines []string // the last ones that the step wrote, safe
	Cut   bool     // there are more before them
	All   string   // the command that shows all of them
}

// Failure draws a job that failed with the last lines of the step that did.
func (s Style) Failure(f Failure) []string {
	head := f.Title
	if f.Step != "" {
		head += ", step " + f.Step
	}
	lines := []string{"", s.paint(boldRed, s.sign("✗ ", "x ")+head) + ": " + f.Why}
	bar := s.paint(red, s.sign("│ ", "| "))
	if f.Cut {
		lines = append(lines, bar+s.paint(dim, s.sign("…", "...")))
	}
	for _, l := range f.Lines {
		lines = append(lines, bar+l)
	}
	return append(lines, s.paint(dim, "all of it: "+f.All))
}

// maxNotes bounds the notes that are told again at the end.
const maxNotes = 30

// Notes collects what jobs remarked. The zero value is ready. It is bounded: of the rest it has the number.
type Notes struct {
	all  []told
	more int
}

// told is a note and who said it.
type told struct {
	Note
	jobs []string
}

// Add takes a note of a job. The same note of several jobs is one.
func (n *Notes) Add(job string, note Note) {
	for i := range n.all {
		if t := &n.all[i]; t.Note == note {
			if t.jobs[len(t.jobs)-1] != job {
				t.jobs = append(t.jobs, job)
			}
			return
		}
	}
	if len(n.all) == maxNotes {
		if n.more++; note.Level != Error {
			return
		}
		// An error takes the place of the last one that is none.
		for i := len(n.all) - 1; i >= 0; i-- {
			if n.all[i].Level != Error {
				n.all = append(n.all[:i], n.all[i+1:]...)
				break
			}
		}
		if len(n.all) == maxNotes {
			return
		}
	}
	n.all = append(n.all, told{note, []string{job}})
}

// maxTellers bounds the jobs that are named beside a note.
const maxTellers = 3

// Notes draws what jobs remarked: errors first, then warnings. Notices were told where they stand. Without several jobs none is named.
func (s Style) Notes(n *Notes, several bool) []string {
	var lines []string
	for _, level := range []Level{Error, Warning} {
		for _, t := range n.all {
			if t.Level != level {
				continue
			}
			line := s.Note(t.Note)
			if several {
				who := strings.Join(t.jobs[:min(len(t.jobs), maxTellers)], ", ")
				if more := len(t.jobs) - maxTellers; more > 0 {
					who += fmt.Sprintf(" and %d more", more)
				}
				line += s.paint(dim, " ["+who+"]")
			}
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return nil
	}
	if n.more > 0 {
		lines = append(lines, s.paint(dim, fmt.Sprintf("%d more remarks stand in the logs", n.more)))
	}
	return append([]string{"", s.paint(bold, "Remarks:")}, lines...)
}

// Tail keeps the last lines that were added. The zero value is ready.
type Tail struct {
	lines []string
	next  int
	cut   bool
}

// Bounds of a Tail.
const (
	TailLines = 20
	tailBytes = 1 << 10 // of each line, about
)

// Add takes a line, which is safe for a terminal.
func (t *Tail) Add(line string) {
	if len(line) > tailBytes {
		if line = safe([]byte(line[:tailBytes]), false); strings.Contains(line, "\x1b") {
			line += "\x1b[0m"
		}
	}
	if len(t.lines) < TailLines {
		t.lines = append(t.lines, line)
		return
	}
	t.lines[t.next] = line
	t.next = (t.next + 1) % TailLines
	t.cut = true
}

// Lines returns the lines, the oldest first, and whether there were more.
func (t *Tail) Lines() (lines []string, cut bool) {
	return append(append([]string(nil), t.lines[t.next:]...), t.lines[:t.next]...), t.cut
}
