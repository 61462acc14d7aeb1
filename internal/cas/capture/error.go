package capture

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// maxNamed bounds how many refused paths an error names.
const maxNamed = 10

// maxShown bounds how much of a path or of a link's target a text shows, in bytes.
const maxShown = 256

// Error says why an output cannot be kept.
type Error struct {
	// Class is OutputMissing, OutputTooLarge or OutputRefused; UploadFailed where this machine or the sink has failed, and
	// the same outputs may well be taken another time.
	Class  forge.Class
	Output string
	Paths  []string // below the base, of what was refused or too much; sorted, at most maxNamed
	Err    error
}

func (e *Error) Error() string { return fmt.Sprintf("output %s: %v", e.Output, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// refusal is something that a pattern takes and that cannot be kept.
type refusal struct{ path, why string }

// refusals are those of one output.
type refusals struct {
	first []refusal // in the order of their paths; at most maxNamed
	more  int
}

func (r *refusals) add(path, why string) {
	i, _ := slices.BinarySearchFunc(r.first, path, func(a refusal, path string) int { return strings.Compare(a.path, path) })
	if r.first = slices.Insert(r.first, i, refusal{path, why}); len(r.first) > maxNamed {
		r.first, r.more = r.first[:maxNamed], r.more+1
	}
}

// err says all of them.
func (r *refusals) err(output string) *Error {
	e, texts := &Error{Class: forge.OutputRefused, Output: output}, []string(nil)
	for _, one := range r.first {
		e.Paths = append(e.Paths, one.path)
		texts = append(texts, fmt.Sprintf("%q %s", shown(one.path), one.why))
	}
	text := strings.Join(texts, "; ")
	if r.more > 0 {
		text += fmt.Sprintf("; and %d more", r.more)
	}
	e.Err = errors.New(text)
	return e
}

// shown keeps a text bounded whatever a job has named its files. What is at the end tells more than what is in front.
func shown(s string) string {
	if len(s) > maxShown {
		return "…" + s[len(s)-maxShown:]
	}
	return s
}
