package pipeline

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Schema is the JSON Schema of pipeline files (draft 2020-12), for editors. It follows from the tables that the decoder reads
// by, and is wider than these where JSON Schema has no words: it knows nothing of expressions, needs and circles. A text may be
// a number or true or false, since that is what editors take an unquoted 1.20 for.
func Schema() []byte {
	defs := map[string]any{}
	root := pipelineFile.shape.object(defs)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Forgeyard pipeline, version 1"
	root["$defs"] = defs
	text, err := json.MarshalIndent(root, "", "  ")
	if err != nil {
		panic(err) // maps, lists and texts can be written
	}
	return append(text, '\n')
}

// schema is the schema of a shape. One that has a name stands in defs.
func (s *shape) schema(defs map[string]any) map[string]any {
	if s.name != "" {
		if _, known := defs[s.name]; !known {
			defs[s.name] = nil // it is being made
			defs[s.name] = s.object(defs)
		}
		return map[string]any{"$ref": "#/$defs/" + s.name}
	}
	switch s.kind {
	case "string":
		return s.string()
	case "boolean":
		return map[string]any{"enum": []any{true, false, "true", "false"}}
	case "integer":
		return map[string]any{"type": []string{"integer", "string"}, "minimum": s.least, "maximum": s.most, "pattern": "^[0-9]+$"}
	case "array":
		return bounds(map[string]any{"type": "array", "items": s.items.schema(defs)}, "Items", s)
	case "object":
		return s.object(defs)
	case "null":
		return map[string]any{"type": "null"}
	}
	if len(s.either) == 0 {
		return map[string]any{}
	}
	var all []any
	for _, one := range s.either {
		all = append(all, one.schema(defs))
	}
	return map[string]any{"anyOf": all}
}

func (s *shape) string() map[string]any {
	out := map[string]any{"type": []string{"string", "number", "boolean"}}
	if len(s.words) > 0 {
		words := make([]any, 0, len(s.words))
		for _, w := range s.words {
			words = append(words, w)
			if json.Valid([]byte(w)) {
				words = append(words, json.RawMessage(w)) // 1 beside "1"
			}
		}
		return map[string]any{"enum": words}
	}
	if s.text != "" {
		out["description"], out["minLength"] = s.text, 1
	}
	if s.pattern != "" {
		out["pattern"] = s.pattern
	}
	if s.example != "" {
		out["examples"] = []string{s.example}
	}
	return out
}

func (s *shape) object(defs map[string]any) map[string]any {
	out := map[string]any{"type": "object"}
	if s.values != nil {
		out["additionalProperties"] = s.values.schema(defs)
		if s.pattern != "" {
			out["propertyNames"] = map[string]any{"pattern": s.pattern}
		}
		return bounds(out, "Properties", s)
	}
	keys, begins, required := map[string]any{}, map[string]any{}, []string{}
	for _, k := range s.keys {
		of := k.shape.schema(defs)
		of["description"] = k.doc
		if k.later {
			of["not"], of["description"] = map[string]any{}, k.doc+" (cannot be used yet)"
		}
		if begin, many := strings.CutSuffix(k.name, "*"); many {
			begins["^"+begin] = of
		} else {
			keys[k.name] = of
		}
		if k.required {
			required = append(required, k.name)
		}
	}
	out["additionalProperties"] = false
	if len(keys) > 0 {
		out["properties"] = keys
	}
	if len(begins) > 0 {
		out["patternProperties"] = begins
	}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// bounds adds how many items or properties there may be.
func bounds(out map[string]any, of string, s *shape) map[string]any {
	if s.least > 0 {
		out["min"+of] = s.least
	}
	if s.most > 0 {
		out["max"+of] = s.most
	}
	return out
}

// Reference is the tables of all keys, for people, as Markdown.
func Reference() string {
	var b strings.Builder
	seen := map[string]bool{}
	queue := []*shape{pipelineFile.shape}
	for i := 0; i < len(queue); i++ { // each name enters once, so it ends
		s := queue[i]
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "### Keys: %s\n\n| Key | Value | Meaning |\n| --- | --- | --- |\n", s.name)
		var later []string
		for _, k := range s.keys {
			if k.later {
				later = append(later, fmt.Sprintf("`%s` (%s)", k.name, k.doc))
				continue
			}
			must := ""
			if k.required {
				must = " **required**"
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", k.name, cell(k.shape.spoken(&queue, seen)), cell(k.doc), must)
		}
		if len(later) > 0 {
			fmt.Fprintf(&b, "\nNot yet, and an error that says so: %s.\n", strings.Join(later, ", "))
		}
	}
	return b.String()
}

// cell makes a text one cell of a table.
func cell(text string) string { return strings.ReplaceAll(text, "|", `\|`) }

// spoken says what a value is, for people, and queues the objects with names that it meets for the first time.
func (s *shape) spoken(queue *[]*shape, seen map[string]bool) string {
	switch {
	case s.name != "":
		if !seen[s.name] {
			seen[s.name] = true
			*queue = append(*queue, s)
		}
		return fmt.Sprintf("[%s](#keys-%s)", s.name, s.name)
	case len(s.words) > 0:
		return "`" + strings.Join(s.words, "`, `") + "`"
	case s.kind == "string" && s.text != "":
		if s.example != "" {
			return s.text + ", as in `" + s.example + "`"
		}
		return s.text
	case s.kind == "string":
		return "text"
	case s.kind == "boolean":
		return "`true`, `false`"
	case s.kind == "integer":
		return fmt.Sprintf("%d to %d", s.least, s.most)
	case s.kind == "array":
		return "list of: " + s.items.spoken(queue, seen)
	case s.kind == "object" && s.values != nil:
		return "names, each with: " + s.values.spoken(queue, seen)
	case s.kind == "object":
		return "`{}`"
	case s.kind == "null":
		return "nothing"
	case len(s.either) == 0:
		return "anything"
	}
	var all []string
	for _, one := range s.either {
		all = append(all, one.spoken(queue, seen))
	}
	return strings.Join(all, "; or ")
}
