package pipeline_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v4"

	"github.com/forgeyard/forgeyard/internal/pipeline"
)

var update = flag.Bool("update", false, "write the schema and the tables of the reference anew")

const (
	schemaFile    = "../../api/pipeline.v1.schema.json"
	referenceFile = "../../docs/pipeline.md"
	beginMark     = "<!-- made from internal/pipeline: begin -->\n"
	endMark       = "<!-- end -->\n"
)

// committed compares a file with what it has to be, or writes it.
func committed(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is stale; run go test ./internal/pipeline -update\n%s", file, diff)
	}
}

func TestTheSchemaIsNotStale(t *testing.T) { committed(t, schemaFile, string(pipeline.Schema())) }

func TestTheReferenceIsNotStale(t *testing.T) {
	text, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(text), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		t.Fatalf("%s has lost its marks", referenceFile)
	}
	committed(t, referenceFile, before+beginMark+"\n"+pipeline.Reference()+"\n"+endMark+after)
}

// Every key says what it is for.
func TestEveryKeyIsDescribed(t *testing.T) {
	for line := range strings.Lines(pipeline.Reference()) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && (strings.TrimSpace(cells[1]) == "" || strings.Trim(cells[2], " |\n") == "") {
			t.Errorf("nothing is said of %s", line)
		}
	}
}

// schemaSays checks a YAML text by the schema, and returns what is wrong with it.
func schemaSays(t *testing.T, text string) []string {
	t.Helper()
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	plain, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var root map[string]any
	if err := json.Unmarshal(pipeline.Schema(), &root); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(plain, &value); err != nil {
		t.Fatal(err)
	}
	return validator{root}.check("", root, value)
}

// Whatever the decoder takes, the schema takes, and it refuses what an editor should mark.
func TestTheSchemaTakesWhatTheDecoderTakes(t *testing.T) {
	for _, good := range []string{
		example,
		"version: \"1\"\nx-a: [1, {b: c}]\njobs: {a: {steps: [make]}}",
		"version: 1\non: push\njobs: {a: {runner: linux, source: false, retry: 2, steps: [{run: make, allow_failure: {exit: [1, \"2\"]}, shell: [perl, -e]}]}}",
		"version: 1\non: {push: , manual: {}}\nenv: {A: 1.20, B: true, C: text}\njobs: {a: {parallel: 3, allow_failure: \"true\", concurrency: {group: g}, steps: [make]}}",
	} {
		if f, found := pipeline.Parse([]byte(good)); f == nil {
			t.Fatalf("%v", found)
		}
		if wrong := schemaSays(t, good); len(wrong) > 0 {
			t.Errorf("the schema refuses\n%s\n%v", good, wrong)
		}
	}
	for bad, want := range map[string]string{
		"jobs: {a: {steps: [make]}}":                                                   "version is missing",
		"version: 2\njobs: {a: {steps: [make]}}":                                       "/version",
		"version: 1\njobs: {}":                                                         "/jobs has 0",
		"version: 1\njobs: {a: {steps: []}}":                                           "/jobs/a/steps",
		"version: 1\njobs: {a b: {steps: [make]}}":                                     "a b",
		"version: 1\njobs: {a: {tiemout: 5m, steps: [make]}}":                          "/jobs/a/tiemout",
		"version: 1\njobs: {a: {image: debian, steps: [make]}}":                        "/jobs/a/image",
		"version: 1\njobs: {a: {network: egress, steps: [make]}}":                      "/jobs/a/network",
		"version: 1\njobs: {a: {parallel: 300, steps: [make]}}":                        "/jobs/a/parallel",
		"version: 1\njobs: {a: {source: maybe, steps: [make]}}":                        "/jobs/a/source",
		"version: 1\njobs: {a: {steps: [{name: x}]}}":                                  "/jobs/a/steps",
		"version: 1\njobs: {a: {needs: [{job: b, optinal: true}], steps: [x]}}":        "/jobs/a/needs",
		"version: 1\njobs: {a: {steps: [make], artifacts: [{name: x}]}}":               "/jobs/a/artifacts",
		"version: 1\non: {manual: {x: y}}\njobs: {a: {steps: [make]}}":                 "/on",
		"version: 1\nenv: [A=b]\njobs: {a: {steps: [make]}}":                           "/env",
		"version: 1\njobs: {a: {matrix: {axes: {go: 1.20}}, steps: [make]}}":           "/jobs/a/matrix/axes/go",
		"version: 1\njobs: {a: {timeout: [5m], steps: [make]}}":                        "/jobs/a/timeout",
		"version: 1\njobs: {a: {artifacts: {name: x, paths: x, sign: k}, steps: [x]}}": "/jobs/a/artifacts",
	} {
		if f, _ := pipeline.Parse([]byte(bad)); f != nil {
			t.Errorf("the decoder takes %s", bad)
		}
		if wrong := strings.Join(schemaSays(t, bad), "; "); !strings.Contains(wrong, want) {
			t.Errorf("%s: the schema says %q, want %q", bad, wrong, want)
		}
	}
}

// A validator knows as much of JSON Schema as ours uses, and refuses more.
type validator struct{ root map[string]any }

func (v validator) check(at string, s map[string]any, value any) (wrong []string) {
	object, _ := value.(map[string]any)
	for word, rule := range s {
		switch word {
		case "$ref":
			name := strings.TrimPrefix(rule.(string), "#/$defs/")
			wrong = append(wrong, v.check(at, v.root["$defs"].(map[string]any)[name].(map[string]any), value)...)
		case "anyOf":
			var all []string
			for _, one := range rule.([]any) {
				found := v.check(at, one.(map[string]any), value)
				if len(found) == 0 {
					all = nil
					break
				}
				all = append(all, found...)
			}
			wrong = append(wrong, all...)
		case "not": // only ever of everything
			wrong = append(wrong, at+" cannot be there")
		case "type":
			kinds, many := rule.([]any)
			if !many {
				kinds = []any{rule}
			}
			kind := kindOf(value)
			if !slices.Contains(kinds, any(kind)) && (kind != "integer" || !slices.Contains(kinds, any("number"))) {
				wrong = append(wrong, fmt.Sprintf("%s is of the type %s", at, kind))
			}
		case "enum":
			if !slices.ContainsFunc(rule.([]any), func(one any) bool { return reflect.DeepEqual(one, value) }) {
				wrong = append(wrong, fmt.Sprintf("%s is %v", at, value))
			}
		case "pattern":
			if text, is := value.(string); is && !regexp.MustCompile(rule.(string)).MatchString(text) {
				wrong = append(wrong, fmt.Sprintf("%s is %q", at, text))
			}
		case "required":
			for _, name := range rule.([]any) {
				if _, there := object[name.(string)]; object != nil && !there {
					wrong = append(wrong, fmt.Sprintf("%s/%s is missing", at, name))
				}
			}
		case "items":
			items, _ := value.([]any)
			for i, one := range items {
				wrong = append(wrong, v.check(fmt.Sprintf("%s/%d", at, i), rule.(map[string]any), one)...)
			}
		case "minItems", "maxItems", "minProperties", "maxProperties", "minimum", "maximum", "minLength":
			if n, is := measured(word, value); is && (strings.HasPrefix(word, "min") && n < rule.(float64) || strings.HasPrefix(word, "max") && n > rule.(float64)) {
				wrong = append(wrong, fmt.Sprintf("%s has %v", at, n))
			}
		case "properties", "patternProperties", "additionalProperties", "propertyNames": // below
		case "$schema", "$defs", "title", "description", "examples":
		default:
			wrong = append(wrong, "the schema says "+word)
		}
	}
	return append(wrong, v.properties(at, s, object)...)
}

func (v validator) properties(at string, s, object map[string]any) (wrong []string) {
	named, _ := s["properties"].(map[string]any)
	begins, _ := s["patternProperties"].(map[string]any)
	for name, value := range object {
		place := at + "/" + name
		if rule, is := s["propertyNames"].(map[string]any); is {
			wrong = append(wrong, v.check(place, rule, name)...)
		}
		known := false
		if rule, is := named[name].(map[string]any); is {
			known = true
			wrong = append(wrong, v.check(place, rule, value)...)
		}
		for pattern := range begins {
			known = known || regexp.MustCompile(pattern).MatchString(name)
		}
		switch rule := s["additionalProperties"].(type) {
		case bool:
			if !known && !rule {
				wrong = append(wrong, place+" is not known")
			}
		case map[string]any:
			if !known {
				wrong = append(wrong, v.check(place, rule, value)...)
			}
		}
	}
	return wrong
}

func kindOf(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case []any:
		return "array"
	case float64:
		if v == float64(int(v)) {
			return "integer"
		}
		return "number"
	}
	return "object"
}

// measured is what a bound is about, where it is about the value.
func measured(word string, value any) (float64, bool) {
	switch v := value.(type) {
	case []any:
		return float64(len(v)), strings.HasSuffix(word, "Items")
	case map[string]any:
		return float64(len(v)), strings.HasSuffix(word, "Properties")
	case string:
		return float64(len(v)), strings.HasSuffix(word, "Length")
	case float64:
		return v, strings.HasSuffix(word, "imum")
	}
	return 0, false
}

// What the reference shows can run.
func TestTheExampleOfTheReferenceIsRight(t *testing.T) {
	text, err := os.ReadFile(referenceFile)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	shown, _, _ := strings.Cut(rest, "```")
	if f, found := pipeline.Parse([]byte(shown)); f == nil || len(found) > 0 {
		t.Errorf("%v", found)
	}
	if wrong := schemaSays(t, shown); len(wrong) > 0 {
		t.Errorf("%v", wrong)
	}
}
