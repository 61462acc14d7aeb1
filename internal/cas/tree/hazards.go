package tree

import (
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// nameHazards judges the names of one folder by themselves. Unicode promises that neither folding nor composition of an
// assigned character ever changes, so older and newer tables disagree only on characters that the older do not know.
func nameHazards(entries []Entry) Hazards {
	var hazards Hazards
	upper, foreign := false, false
	for i := range entries {
		name := entries[i].Name
		if windowsIllegal(name) || entries[i].Kind == Link && windowsIllegalTarget(entries[i].Target) {
			hazards |= WindowsIllegal
		}
		for j := range len(name) {
			c := name[j]
			upper = upper || 'A' <= c && c <= 'Z'
			foreign = foreign || c >= utf8.RuneSelf
		}
	}
	switch {
	case len(entries) < 2 || !upper && !foreign:
		return hazards // different lower-case names of ASCII conflict nowhere
	case !foreign:
		folded := make([]string, len(entries))
		for i := range entries {
			folded[i] = strings.ToLower(entries[i].Name)
		}
		if distinct(folded) < len(entries) {
			hazards |= CaseConflict
		}
		return hazards
	}
	return hazards | foreignConflicts(entries)
}

// foreignConflicts compares names that are not all ASCII: composed, and then composed and folded.
func foreignConflicts(entries []Entry) Hazards {
	var hazards Hazards
	composed, folded := make([]string, len(entries)), make([]string, len(entries))
	fold := cases.Fold()
	for i := range entries {
		composed[i] = norm.NFC.String(entries[i].Name)
		folded[i] = norm.NFC.String(fold.String(composed[i]))
	}
	names := distinct(composed)
	if names < len(entries) {
		hazards |= NFCConflict
	}
	if distinct(folded) < names {
		hazards |= CaseConflict
	}
	return hazards
}

// distinct sorts names and counts the different ones.
func distinct(names []string) int {
	slices.Sort(names)
	return len(slices.Compact(names))
}

// windowsIllegal reports whether Windows cannot have a file of this name: a reserved character, a dot or space at the
// end, or a device, whose name counts with anything behind a dot.
func windowsIllegal(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < 0x20 || strings.IndexByte(`<>:"|?*\`, c) >= 0 {
			return true
		}
	}
	if last := name[len(name)-1]; last == '.' || last == ' ' {
		return true
	}
	stem, _, _ := strings.Cut(name, ".")
	return device(strings.TrimRight(stem, " "))
}

func windowsIllegalTarget(target string) bool {
	for part := range strings.SplitSeq(target, "/") {
		if part != "" && part != "." && part != ".." && windowsIllegal(part) {
			return true
		}
	}
	return false
}

// device reports whether a name without its extension is one of Windows' devices. Superscript digits count as digits.
func device(stem string) bool {
	if len(stem) < 3 || len(stem) > len("CONOUT$") {
		return false
	}
	stem = strings.ToUpper(stem)
	switch stem {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(stem, "COM")
	if !ok {
		port, ok = strings.CutPrefix(stem, "LPT")
	}
	return ok && (len(port) == 1 && '0' <= port[0] && port[0] <= '9' || port == "¹" || port == "²" || port == "³")
}

// String lists the hazards, as in "case-conflict, windows-illegal", or says "none".
func (h Hazards) String() string {
	var names []string
	for _, known := range [...]struct {
		bit  Hazards
		name string
	}{{CaseConflict, "case-conflict"}, {NFCConflict, "nfc-conflict"}, {WindowsIllegal, "windows-illegal"}} {
		if h&known.bit != 0 {
			names = append(names, known.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
