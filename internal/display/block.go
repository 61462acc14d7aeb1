package display

import (
	"fmt"
	"strings"
	"time"
)

// A State is how far a job is.
type State uint8

// The states, those first that are shown first where there is not room for all.
const (
	Running   State = 1
	Failed    State = 2
	Ready     State = 3 // waits for a runner
	Waiting   State = 4 // for jobs that it needs
	Cancelled State = 5
	Skipped   State = 6
	Succeeded State = 7
)

var stateNames = map[State]string{
	Running: "running", Failed: "failed", Ready: "ready", Waiting: "waiting", Cancelled: "cancelled", Skipped: "skipped", Succeeded: "succeeded",
}

// String is the state in a sentence.
func (s State) String() string { return stateNames[s] }

// counted is the order in which states are counted in a line.
var counted = []State{Failed, Running, Ready, Waiting, Succeeded, Skipped, Cancelled}

// A Job is one job of a run as it is now. Its texts are on one line and safe for a terminal.
type Job struct {
	Title string
	State State
	Begun time.Time // of the attempt that runs, or that ran last; zero: nothing has
	Ended time.Time
	Step  string // that runs
	Said  string // the line that it has begun and not ended, without colours
	Why   string // it waits, failed or was skipped
}

// A Run is what is shown of a run.
type Run struct {
	Jobs  []Job // in the order of the pipeline
	Begun time.Time
	Hint  string // what a key does
}

// margin is kept free at the right end of each line, for what a terminal echoes of keys.
const margin = 3

// Block draws the jobs of a run in lines that are no wider than the terminal, at most half as many as it is high. It is empty
// where there is no room for anything.
func (s Style) Block(r *Run, width, height int, now time.Time) []string {
	width -= margin
	most := height / 2
	switch {
	case width < 10 || most < 1 || len(r.Jobs) == 0:
		return nil
	case len(r.Jobs) == 1:
		return s.alone(r, width, most, now)
	case most < 3 || width < 20:
		return []string{s.sum(r, width, now)}
	}
	shown, rest := choose(r.Jobs, most-1)
	var lines []string
	titles := 0
	for _, i := range shown {
		titles = max(titles, Width(r.Jobs[i].Title))
	}
	titles = min(titles, max(10, width/2), 40)
	for _, i := range shown {
		lines = append(lines, s.row(&r.Jobs[i], titles, width, now))
	}
	if len(rest) > 0 {
		text := fmt.Sprintf("%s %d more: %s", s.sign("…", "~"), len(rest), tally(r.Jobs, rest))
		lines = append(lines, s.paint(dim, s.cut(text, width)))
	}
	return append(lines, s.sum(r, width, now))
}

// Line draws a single line as a block, no wider than the terminal; none where that is too narrow.
func (s Style) Line(text string, width int) []string {
	if width -= margin; width < 10 {
		return nil
	}
	return []string{s.cut(text, width)}
}

// choose returns which jobs have room in so many lines, in their order, and which have not. One line is left to say so.
func choose(jobs []Job, room int) (shown, rest []int) {
	if len(jobs) <= room {
		return indices(len(jobs), func(int) bool { return true }), nil
	}
	room--
	wanted := make([]bool, len(jobs))
	for state := Running; state <= Succeeded && room > 0; state++ {
		for i := range jobs {
			if jobs[i].State == state && room > 0 {
				wanted[i] = true
				room--
			}
		}
	}
	return indices(len(jobs), func(i int) bool { return wanted[i] }), indices(len(jobs), func(i int) bool { return !wanted[i] })
}

func indices(n int, want func(int) bool) (which []int) {
	for i := range n {
		if want(i) {
			which = append(which, i)
		}
	}
	return which
}

// tally counts jobs by their state.
func tally(jobs []Job, which []int) string {
	counts := map[State]int{}
	for _, i := range which {
		counts[jobs[i].State]++
	}
	var parts []string
	for _, state := range counted {
		if n := counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %v", n, state))
		}
	}
	return strings.Join(parts, ", ")
}

// sum is the last line of a block.
func (s Style) sum(r *Run, width int, now time.Time) string {
	text := fmt.Sprintf("%d jobs: %s", len(r.Jobs), tally(r.Jobs, indices(len(r.Jobs), func(int) bool { return true })))
	return s.paint(bold, s.cut(s.joined(text, Took(now.Sub(r.Begun)), r.Hint), width))
}

// joined puts parts of a line beside each other.
func (s Style) joined(parts ...string) string {
	var some []string
	for _, p := range parts {
		if p != "" {
			some = append(some, p)
		}
	}
	return strings.Join(some, s.sign(" · ", " - "))
}

// alone draws the only job of a run: the line that it has begun, and how it is.
func (s Style) alone(r *Run, width, most int, now time.Time) []string {
	j := &r.Jobs[0]
	var lines []string
	if j.Said != "" && most > 1 {
		lines = append(lines, s.cut(j.Said, width))
	}
	what := j.Step
	if j.State != Running {
		what = j.Why
	}
	text := s.joined(j.Title, j.took(now), what, r.Hint)
	return append(lines, s.mark(j.State)+" "+s.paint(bold, s.cut(text, width-2)))
}

// mark is the sign of a state.
func (s Style) mark(state State) string {
	switch state {
	case Running:
		return s.paint(yellow, s.sign("●", "*"))
	case Failed:
		return s.paint(red, s.sign("✗", "x"))
	case Succeeded:
		return s.paint(green, s.sign("✓", "+"))
	case Cancelled, Skipped:
		return s.paint(dim, "-")
	}
	return s.paint(dim, s.sign("○", "."))
}

// timeColumns is the width of the longest time that Took writes in a day.
const timeColumns = 6

// row draws one job: its sign, title and time, and what there is to say.
func (s Style) row(j *Job, titles, width int, now time.Time) string {
	title := s.cut(j.Title, titles)
	title += strings.Repeat(" ", titles-Width(title))
	line := title + fmt.Sprintf("%*s", timeColumns+1, j.took(now))
	what := j.Why
	if j.State == Running {
		what = j.Step
		if j.Said != "" {
			what = strings.TrimPrefix(what+": "+j.Said, ": ")
		}
	}
	if room := width - 2 - Width(line) - 2; room > 3 && what != "" && j.State != Succeeded {
		return s.mark(j.State) + " " + line + "  " + s.paint(dim, s.cut(what, room))
	}
	return s.mark(j.State) + " " + s.cut(line, width-2)
}

func (j *Job) took(now time.Time) string {
	if j.Begun.IsZero() {
		return ""
	}
	if !j.Ended.IsZero() {
		now = j.Ended
	}
	return Took(now.Sub(j.Begun))
}
