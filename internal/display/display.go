// Package display is how a run looks to a person while it runs and when it has ended: the table of its jobs, the lines of
// its logs, and what failed, told once more at the end. Everything here is a function of values: what there is, how wide
// and how high the terminal is, and what time it is. Package terminal owns the terminal and the goroutine.
//
//	bytes of a log → Reader → Items → Style.Item → lines above, which stay
//	Run            → Style.Block → lines below, which are drawn anew
//	Failures, Notes → Style.Failure, Style.Notes → lines at the end
//
// What a job writes is shown and nothing else: marks such as ::group:: and ::error:: change how a line looks, never what a
// job is, gets or does (B70). No byte of it reaches a terminal other than as text and colours (S21); of a line that was
// written over with carriage returns the last state is shown (B53). The log that is stored has every byte.
package display

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/width"
)

// A Style is how things look on one output. The zero value is plain text.
type Style struct {
	Colour bool
	ASCII  bool // no characters beyond ASCII of our own
}

// StyleOf reads from the environment what an output may show. NO_COLOR takes colours away; else CLICOLOR_FORCE gives them to
// what is no terminal.
func StyleOf(getenv func(string) string, terminal bool) Style {
	var s Style
	force := getenv("CLICOLOR_FORCE")
	switch {
	case getenv("NO_COLOR") != "":
	case force != "" && force != "0":
		s.Colour = true
	case getenv("TERM") == "dumb" || getenv("CLICOLOR") == "0":
	default:
		s.Colour = terminal
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if locale := strings.ToUpper(getenv(name)); locale != "" {
			s.ASCII = !strings.Contains(locale, "UTF-8") && !strings.Contains(locale, "UTF8")
			break // where nobody says, a terminal of today can
		}
	}
	s.ASCII = s.ASCII || getenv("TERM") == "linux" // whose font has few signs
	return s
}

// The colours that we use, as parameters of SGR.
const (
	bold    = "1"
	dim     = "2"
	red     = "31"
	green   = "32"
	yellow  = "33"
	boldRed = "1;31"
)

// prefixColours tell the lines of jobs apart. Red is left to failures.
var prefixColours = []string{"36", "33", "35", "34", "32", "96", "95", "94"}

func (s Style) paint(code, text string) string {
	if !s.Colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// sign returns a sign of ours, or what stands for it in ASCII.
func (s Style) sign(sign, ascii string) string {
	if s.ASCII {
		return ascii
	}
	return sign
}

// Prefix is what stands before each line of a job: its title, filled up to so many columns, in a colour of its place.
func (s Style) Prefix(place int, title string, columns int) string {
	pad := strings.Repeat(" ", max(0, columns-Width(title)))
	return s.paint(prefixColours[place%len(prefixColours)], title+pad+" |") + " "
}

// Took writes a span of time as people read it.
func Took(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 10*time.Second:
		return fmt.Sprintf("%.1fs", d.Truncate(100*time.Millisecond).Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// columns is how many columns of a terminal a character takes.
func columns(r rune) int {
	switch {
	case r < ' ' || unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r < unicode.MaxLatin1:
		return 1
	}
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	return 1
}

// Width is how many columns a line takes. Colours take none.
func Width(line string) int {
	n, escape := 0, false
	for _, r := range line {
		switch {
		case escape:
			escape = r != 'm'
		case r == 0x1b:
			escape = true
		default:
			n += columns(r)
		}
	}
	return n
}

// cut shortens a text without colours to so many columns, and shows that it did.
func (s Style) cut(text string, most int) string {
	if Width(text) <= most {
		return text
	}
	more := s.sign("…", "~")
	n := 0
	for i, r := range text {
		c := columns(r)
		if n+c > most-1 {
			if most < 1 {
				return ""
			}
			return text[:i] + more
		}
		n += c
	}
	return text
}
