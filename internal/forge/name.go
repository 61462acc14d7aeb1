package forge

import (
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of texts, in bytes.
const (
	MaxName    = 64   // of jobs, steps, outputs, axes, pools, devices, toolchains
	MaxRefName = 128  // of projects and secrets, which may have slashes
	MaxTitle   = 256  // of a text for people
	MaxPath    = 1024 // of a path or a pattern
)

// WorkRoot is where an attempt's work folder is mounted. Paths of a job are written relative to it.
const WorkRoot = "/work"

// SourceDir is where the source of a run is mounted, relative to WorkRoot.
const SourceDir = "source"

// nameByte says which bytes a name may hold behind its first, which is a letter, a digit or an underscore.
func nameByte(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9' || b == '_' || b == '-' || b == '.'
}

// isName reports whether s can name something: it is safe in a path, a label and a log line.
func isName(s string, most int) bool {
	if s == "" || len(s) > most || s[0] == '-' || s[0] == '.' {
		return false
	}
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return true
}

// isRefName reports whether s is one or more names with slashes between.
func isRefName(s string) bool {
	for part := range strings.SplitSeq(s, "/") {
		if !isName(part, MaxRefName) {
			return false
		}
	}
	return len(s) <= MaxRefName
}

// isLabel reports whether s can be a label: a name that may also hold / = : and +.
func isLabel(s string) bool {
	if s == "" || len(s) > MaxName || !isName(s[:1], 1) {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || !nameByte(byte(r)) && !strings.ContainsRune("/=:+", r) }) < 0
}

// isEnvName reports whether s can be the name of an environment variable.
func isEnvName(s string) bool {
	if s == "" || len(s) > maxEnvName || '0' <= s[0] && s[0] <= '9' {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf || !nameByte(byte(r)) || r == '-' || r == '.' }) < 0
}

// isTitle reports whether s is a text for people: one line without control characters.
func isTitle(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

// isText reports whether s can be handed to a process: UTF-8 without a zero byte.
func isText(s string, most int) bool {
	return len(s) <= most && utf8.ValidString(s) && strings.IndexByte(s, 0) < 0
}

// isWorkPath reports whether s is a path below WorkRoot in its shortest spelling: relative, with slashes, without . and
// .. elements, so that joining it can never lead out.
func isWorkPath(s string) bool {
	return s != "" && s != "." && !path.IsAbs(s) && path.Clean(s) == s && s != ".." && !strings.HasPrefix(s, "../") &&
		isTitle(s, MaxPath) && !strings.Contains(s, `\`)
}

// PatternValid reports whether s can be a pattern of files below a folder.
func PatternValid(s string) bool { return isPattern(s) }

// Validate checks the name and the value of a variable.
func (v EnvVar) Validate() error {
	var c checker
	c.env(nil, []EnvVar{v})
	return c.err()
}

// isPattern reports whether s is a file pattern that stays below its base. A leading ! takes matches away; a trailing
// slash means a folder.
func isPattern(s string) bool {
	if !isTitle(s, MaxPath) || strings.Contains(s, `\`) {
		return false
	}
	for part := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(s, "!"), "/"), "/") {
		if part == "" || part == "." || part == ".." {
			return false
		}
	}
	return true
}

func (c *checker) name(at *where, s string) {
	if !isName(s, MaxName) {
		c.add(at, "%q is no name: 1 to %d letters, digits, _ - and ., first none of - .", clip(s), MaxName)
	}
}

func (c *checker) refName(at *where, s string) {
	if !isRefName(s) {
		c.add(at, "%q is no name: at most %d bytes, names with / between", clip(s), MaxRefName)
	}
}

func (c *checker) label(at *where, s string) {
	if !isLabel(s) {
		c.add(at, "%q is no label: 1 to %d letters, digits and _-./=:+, first a letter, digit or _", clip(s), MaxName)
	}
}

func (c *checker) title(at *where, s string, most int) {
	if !isTitle(s, most) {
		c.add(at, "%q is not one line of at most %d bytes", clip(s), most)
	}
}

func (c *checker) text(at *where, s string, most int) {
	if !isText(s, most) {
		c.add(at, "is not UTF-8 without zero bytes, of at most %d bytes", most)
	}
}

func (c *checker) workPath(at *where, s string) {
	if !isWorkPath(s) {
		c.add(at, "%q is no clean path below %s", clip(s), WorkRoot)
	}
}

// duration checks that d is at least a millisecond, at most most, and in whole milliseconds, the unit in which durations travel.
func (c *checker) duration(at *where, d, most time.Duration) {
	if d < time.Millisecond || d > most {
		c.add(at, "%v is not within 1ms and %v", d, most)
	} else if d%time.Millisecond != 0 {
		c.add(at, "%v is not in whole milliseconds", d)
	}
}

// word finds the number of a word of an enumeration.
func word[T ~uint8](what string, words []string, s string) (T, error) {
	for n, w := range words {
		if w != "" && w == s {
			return T(n), nil
		}
	}
	return 0, Problems{{What: what + " " + strings.ToValidUTF8(clip(s), "?") + " is not known; known are " + listWords(words)}}
}

func listWords(words []string) string {
	var known []string
	for _, w := range words {
		if w != "" {
			known = append(known, w)
		}
	}
	return strings.Join(known, ", ")
}
