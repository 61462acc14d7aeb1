package pipeline

import (
	"slices"
	"strings"
)

// elsewhere are keys of other systems, with ours for the same thing and how to write it.
var elsewhere = []struct{ theirs, ours, write string }{
	{"runs-on", "runner", "write runner: with labels, as in runner: linux"},
	{"tags", "runner", "write runner: with labels, as in runner: linux"},
	{"agents", "runner", "write runner: with labels, as in runner: linux"},
	{"script", "run", "write it as run:"},
	{"script", "steps", "write steps: with a list of scripts"},
	{"before_script", "steps", "write it as the first of the steps:"},
	{"after_script", "steps", "write another job, with needs: and if: always()"},
	{"command", "run", "write it as run:"},
	{"commands", "run", "write them as run:, on lines of their own behind a |"},
	{"uses", "run", "there are no actions; write what it does as run:"},
	{"with", "run", "there are no actions; write what it does as run:"},
	{"working-directory", "dir", "write it as dir:"},
	{"depends_on", "needs", "write it as needs:"},
	{"dependencies", "needs", "write it as needs:"},
	{"stage", "needs", "there are no stages; write what a job waits for as needs:"},
	{"stages", "jobs", "there are no stages; write what each job waits for as needs:"},
	{"strategy", "matrix", "write it as matrix: with axes:"},
	{"timeout-minutes", "timeout", "write it as timeout:, with a unit, as in 20m"},
	{"timeout_in_minutes", "timeout", "write it as timeout:, with a unit, as in 20m"},
	{"continue-on-error", "allow_failure", "write it as allow_failure: true"},
	{"soft_fail", "allow_failure", "write it as allow_failure: true"},
	{"variables", "env", "write it as env:"},
	{"environment", "env", "write variables as env:"},
	{"rules", "if", "write it as if:, with an expression such as git.branch == 'main'"},
	{"only", "if", "write it as if:, with an expression such as git.branch == 'main'"},
	{"when", "if", "write it as if:, with an expression such as git.branch == 'main'"},
	{"resource_group", "concurrency", "write it as concurrency:"},
	{"cancel-in-progress", "cancel_running", "write it as cancel_running: true"},
	{"artifact_paths", "artifacts", "write it as artifacts: with name: and paths:"},
	{"extends", "steps", "write what jobs share below a key x-… with an anchor, and merge it with <<:"},
	{"image", "jobs", "there are no images yet; jobs see the programs of their runner"},
	{"workflow", "jobs", "write the jobs below jobs:"},
	{"pipeline", "jobs", "write the jobs below jobs:"},
	{"permissions", "jobs", "leave it out; a job has no rights with a server that could be taken away"},
}

// unknownKey says what may have been meant by a key that is not known: one that is spelt like it, or ours for the same thing.
func unknownKey(name string, known []string) string {
	for _, e := range elsewhere {
		if e.theirs == name && slices.Contains(known, e.ours) {
			return e.write
		}
	}
	return meant(name, known)
}

// syntaxHints say what to look at, by what the YAML library says.
var syntaxHints = []struct{ said, hint string }{
	{"mapping values are not allowed", "a text with a colon and a space in it stands in quotes, or on lines of its own behind a |; " +
		"otherwise look whether the line stands in the column of its neighbours, and whether the one above ends with its colon"},
	{"did not find expected key", "look whether this line stands in the column of its neighbours, and whether what is above it has a colon, and its quotes and brackets closed"},
	{"did not find expected <document start>", "look whether the first lines stand in one column, without spaces in front"},
	{"did not find expected '-'", "look whether this line stands in the column of its neighbours; each entry of a list begins with a - and a space"},
	{"could not find expected ':'", "a key has a colon and a space behind it, as in timeout: 20m"},
	{"did not find expected ',' or '}'", "look for a } or a comma that is missing, or a quote that is not closed"},
	{"did not find expected ',' or ']'", "look for a ] or a comma that is missing, or a quote that is not closed"},
	{"unknown anchor", "write it before, as in x-name: &name { … }, or correct its name"},
	{"control characters", "save the file as plain text in UTF-8"},
}

func syntaxHint(said string) string {
	for _, h := range syntaxHints {
		if strings.Contains(said, h.said) {
			return h.hint
		}
	}
	return ""
}
