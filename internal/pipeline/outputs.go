package pipeline

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// OutputError says what is wrong with what a step has written for the outputs of its job.
type OutputError struct {
	Step   int // from 1
	Reason string
}

func (e *OutputError) Error() string { return fmt.Sprintf("step %d: %s", e.Step, e.Reason) }

// StepValues reads what the steps of a job have written for its outputs, from the files of the artifact StepOutputs: by the
// id of the step and the name of the value. A file output has lines NAME=VALUE, of which the last with a name counts;
// everything behind the first = is the value. A file outputs/NAME holds a value of several lines, byte for byte. No line of a
// log and no other file is ever read. The error is an *OutputError.
func (n Node) StepValues(files map[string][]byte) (map[string]map[string]string, error) {
	all := map[string]map[string]string{}
	for i, s := range n.Job.Steps {
		id := s.ID.Value
		if id == "" {
			continue
		}
		values := map[string]string{}
		folder := strconv.Itoa(i)
		if err := valuesOfLines(values, string(files[folder+"/output"])); err != nil {
			return nil, &OutputError{i + 1, err.Error()}
		}
		prefix := folder + "/outputs/"
		for _, path := range slices.Sorted(maps.Keys(files)) {
			if name, ok := strings.CutPrefix(path, prefix); ok {
				if err := setValue(values, name, string(files[path])); err != nil {
					return nil, &OutputError{i + 1, err.Error()}
				}
			}
		}
		all[id] = values
	}
	return all, nil
}

func valuesOfLines(into map[string]string, text string) error {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok {
			return fmt.Errorf("the line %q in $FORGEYARD_OUTPUT has no =; write NAME=VALUE, and a value of several lines into $FORGEYARD_OUTPUT_DIR/NAME", clip(line))
		}
		if err := setValue(into, name, value); err != nil {
			return err
		}
	}
	return nil
}

func setValue(into map[string]string, name, value string) error {
	switch {
	case nameHint(name) != "":
		return fmt.Errorf("%q cannot be the name of an output; %s", clip(name), nameHint(name))
	case !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0:
		return fmt.Errorf("the output %s is not UTF-8 without zero bytes; keep it as an artifact", name)
	}
	into[name] = value
	return nil
}

// Allows reports whether a failure of a job counts as a success: its class, and the exit code where that is what it was.
func (j *Job) Allows(class forge.Class, exit uint8) bool {
	a := j.AllowFailure
	return class.Fault() == forge.FaultUser && (a.Any || class == forge.ExitCode && slices.Contains(a.ExitCodes, exit))
}

// KeptAt is where an artifact of a needed job stands below NeedsDir. A leg is a folder of its values.
func KeptAt(n Node, artifact string) string {
	path := string(n.Job.Key) + "/"
	if len(n.Leg) > 0 && len(n.Job.legs) > 1 {
		path += LegDir(n.Leg) + "/"
	}
	return path + artifact
}

// LegDir is the name of the folder that stands for a leg: its values with commas between.
func LegDir(leg forge.Leg) string {
	values := make([]string, 0, len(leg))
	for _, v := range leg {
		values = append(values, safe(v.Value))
	}
	return strings.Join(values, ",")
}

// safe is a value as a part of a path: what could mean something else there is an underscore.
func safe(value string) string {
	text := strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|,`, r) {
			return '_'
		}
		return r
	}, value)
	if strings.Trim(text, ".") == "" {
		return "_" + text
	}
	return text
}
