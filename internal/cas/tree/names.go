package tree

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// nameFault says why a name cannot stand in a folder of any platform.
func nameFault(name string) string {
	switch {
	case name == "" || name == "." || name == "..":
		return "is no name"
	case len(name) > MaxName:
		return "is longer than " + strconv.Itoa(MaxName) + " bytes"
	case strings.ContainsAny(name, "/\x00"):
		return "holds a slash or a zero byte"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	}
	return ""
}

// targetFault says why a link cannot have a target. Two dots may stand only at the front, where they climb folders of the
// tree: behind a name they would climb out of whatever that name is a link to, and where that is no single tree can say.
func targetFault(target string) string {
	switch {
	case target == "":
		return "has no target"
	case len(target) > MaxTarget:
		return "is longer than " + strconv.Itoa(MaxTarget) + " bytes"
	case target[0] == '/':
		return "is absolute; only relative links inside of the tree are kept"
	case strings.Contains(target, "\x00") || !utf8.ValidString(target):
		return "holds a zero byte or is not UTF-8"
	}
	below := false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == "" || part == ".":
		case part == "..":
			if below {
				return "has .. behind a name, where it may lead anywhere"
			}
		case len(part) > MaxName:
			return "has a name of more than " + strconv.Itoa(MaxName) + " bytes"
		default:
			below = true
		}
	}
	return ""
}

// Climb is how many folders a link goes up before it goes down. It stays inside of its tree if that is at most the number
// of folders above it, the root not counted.
func (e *Entry) Climb() int {
	climb := 0
	for part := range strings.SplitSeq(e.Target, "/") {
		if part == ".." {
			climb++
		}
	}
	return climb
}

// CheckLink refuses a link that leads out of its tree, where path is where it stands.
func (e *Entry) CheckLink(path string) error {
	if e.Kind == Link && e.Climb() > strings.Count(path, "/") {
		return &LinkError{Path: path, Target: e.Target, Reason: "leads out of the tree"}
	}
	return nil
}
