package pipeline_test

import "testing"

// Case B93: keys of other systems, and what goes wrong most with YAML, are told with what to write here.
func TestMistakesOfBeginnersAreToldWithWhatToWrite(t *testing.T) {
	told(t, map[string][]string{
		"version: 1\njobs:\n  a:\n    runs-on: ubuntu\n    steps: [x]\n":                          {"4:5 write runner: with labels"},
		"version: 1\njobs:\n  a:\n    script: [x]\n    steps: [x]\n":                              {"4:5 write steps: with a list"},
		"version: 1\njobs:\n  a:\n    steps: [{uses: actions/checkout@v4, run: x}]\n":             {"4:14 there are no actions"},
		"version: 1\njobs:\n  a:\n    timeout-minutes: 20\n    steps: [x]\n":                      {"4:5 with a unit, as in 20m"},
		"version: 1\nstages: [a]\njobs: {a: {steps: [x]}}\n":                                      {"2:1 there are no stages"},
		"version: 1\njobs:\n  a:\n    continue-on-error: true\n    steps: [x]\n":                  {"4:5 allow_failure: true"},
		"version: 1\njobs:\n  a:\n    steps: [x]\n   needs: b\n":                                  {"5:4 column of its neighbours"},
		"version: 1\njobs:\n  a:\n    steps: [x\n":                                                {"5:1 a ] or a comma that is missing"},
		"  version: 1\njobs: {a: {steps: [x]}}\n":                                                 {"2:1 without spaces in front"},
		"version: 1\njobs: {a: {<<: *base, steps: [x]}}\n":                                        {"2:16 write it before"},
		"version: 1\njobs: {a: {steps: [x]}}\n\x00":                                               {"0:0 save the file as plain text"},
		"version: 1\njobs:\n  a:\n    runner: { cpu: 0 }\n    steps: [x]\n":                       {"4:20 more than no core"},
		"version: 1\njobs:\n  a:\n    env: { A: 1 }\n    steps:\n      - echo a\n     - echo b\n": {"7:6 column of its neighbours"},
	})
}
