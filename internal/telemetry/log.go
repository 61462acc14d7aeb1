package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
)

// A Format is how log records look.
type Format uint8

// The formats.
const (
	Auto Format = 0 // Text on a terminal, JSON elsewhere
	Text Format = 1 // for people
	JSON Format = 2 // for programs: one object a line
)

// ParseFormat reads a format as configuration names it.
func ParseFormat(s string) (Format, error) {
	switch s {
	case "auto", "":
		return Auto, nil
	case "text":
		return Text, nil
	case "json":
		return JSON, nil
	}
	return 0, fmt.Errorf("unknown log format %q: use auto, text or json", s)
}

// ParseLevel reads a level as configuration names it.
func ParseLevel(s string) (slog.Level, error) {
	switch strings.ToLower(s) {
	case "debug":
		return slog.LevelDebug, nil
	case "info", "":
		return slog.LevelInfo, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("unknown log level %q: use debug, info, warn or error", s)
}

// NewLogger returns a logger that writes to w. Its level is read at every record: a *slog.LevelVar can be changed while
// the program runs. The logger may be used by many goroutines; w gets one whole record with each Write.
func NewLogger(w io.Writer, level slog.Leveler, format Format) *slog.Logger {
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: spell}
	if format == Text || format == Auto && IsTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// spell writes a value that has a text form as that text in both formats: ids as people search for them, states by their
// names.
func spell(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindAny {
		if text, ok := a.Value.Any().(fmt.Stringer); ok {
			a.Value = slog.StringValue(text.String())
		}
	}
	return a
}

// IsTerminal reports whether w is a terminal, where a person reads.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && (isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()))
}
