// Package openapi writes an OpenAPI 3.1 document of an HTTP interface from what the program itself knows: its routes, the Go types
// of what goes in and comes out, and the comments on those types. What the document says is so in the code, or does not stand
// there.
//
// A type is described as encoding/json writes it: fields by their tags, those without omitempty required; a named struct once,
// under its name. Comments are read from the sources, so a document is made where these are, by a test, and committed.
//
// It refuses what it would have to guess: a route, a parameter or a type that nothing is said about is an error, and so is a type
// whose JSON is its own affair and that nobody has described. It starts no goroutine.
package openapi

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Document is an interface.
type Document struct {
	Title, Version, About string
	Base                  string // the path that most operations are below; their names leave it out
	// Roles are who may ask, each with what it is for; operations name them.
	Roles      []Role
	Operations []Operation
	// Custom describes types that write their JSON themselves: as a schema in YAML.
	Custom map[reflect.Type]string
	// Failure is the type of an answer that says why a request was not carried out, and FailureMedia its media type.
	Failure      reflect.Type
	FailureMedia string
	Comments     Comments
}

// Role is who may ask.
type Role struct{ Name, About string }

// Operation is one method of one path.
type Operation struct {
	Method, Path string // the path from the root, with {name} for its parameters
	About        string
	Role         string // that it takes; empty: anybody may ask
	Parameters   []Parameter
	Body         any // nil: there is none; a Media; else a value of the type that is sent as JSON
	Status       int
	Answers      []any  // likewise; a Stream as well
	Answered     string // about the answer; empty: nothing more than the type says
}

// Parameter is something that goes in besides the body.
type Parameter struct {
	Name, In, About string // In is path, query or header
	Type            string // string, integer or boolean
}

// Media is a body that is not JSON.
type Media string

// Stream is an event stream (text/event-stream), each event with JSON for its data.
type Stream []Event

// Event is one kind of event: its name, and a value of the type of its data.
type Event struct {
	Name string
	Data any
}

const (
	mediaJSON   = "application/json"
	mediaStream = "text/event-stream"
)

// YAML returns the document.
func (d *Document) YAML() ([]byte, error) {
	w := &writer{doc: d, schemas: map[string]*yaml.Node{}, types: map[string]reflect.Type{}}
	paths := mapping()
	for i := range d.Operations {
		op := &d.Operations[i]
		item := entry(paths, op.Path)
		if find(item, strings.ToLower(op.Method)) != nil {
			w.wrong("%s %s stands there twice", op.Method, op.Path)
		}
		set(item, strings.ToLower(op.Method), w.operation(op))
	}
	problem := w.ref(d.Failure)
	components := mapping(
		"securitySchemes", mapping("token", mapping("type", "http", "scheme", "bearer", "description", w.roles())),
		"responses", mapping("Problem", mapping("description", "Why it was not carried out",
			"content", mapping(d.FailureMedia, mapping("schema", problem)))),
		"schemas", w.sorted(),
	)
	if len(w.errs) > 0 {
		return nil, errors.Join(w.errs...)
	}
	root := mapping(
		"openapi", "3.1.0",
		"info", mapping("title", d.Title, "version", d.Version, "description", d.About),
		"servers", list(mapping("url", "/")),
		"security", list(mapping("token", list())),
		"paths", paths,
		"components", components,
	)
	return yaml.Marshal(root)
}

// writer holds what is found on the way.
type writer struct {
	doc     *Document
	schemas map[string]*yaml.Node
	types   map[string]reflect.Type // of each name, so that two types do not share one
	errs    []error
}

func (w *writer) wrong(format string, args ...any) {
	w.errs = append(w.errs, fmt.Errorf("openapi: "+format, args...))
}

func (w *writer) roles() string {
	text := "Each operation says the role that it takes as x-role; the roles below may do what those above them may."
	for _, r := range w.doc.Roles {
		text += "\n- " + r.Name + ": " + r.About
	}
	return text
}

func (w *writer) operation(op *Operation) *yaml.Node {
	if op.About == "" {
		w.wrong("nothing is said of %s %s", op.Method, op.Path)
	}
	out := mapping("operationId", w.doc.operationID(op), "summary", op.About)
	if op.Role == "" {
		set(out, "security", list())
	} else {
		set(out, "x-role", op.Role)
	}
	if params := w.parameters(op); len(params.Content) > 0 {
		set(out, "parameters", params)
	}
	if op.Body != nil {
		set(out, "requestBody", mapping("required", true, "content", w.content(op, op.Body)))
	}
	answer := mapping("description", cmp.Or(op.Answered, describe(op)))
	if len(op.Answers) > 0 {
		content := mapping()
		for _, one := range op.Answers {
			content.Content = append(content.Content, w.content(op, one).Content...)
		}
		set(answer, "content", content)
	}
	set(out, "responses", mapping(strconv.Itoa(op.Status), answer, "default", reference("responses", "Problem")))
	return out
}

// describe says in general what comes back.
func describe(op *Operation) string {
	if len(op.Answers) == 0 {
		return "Done"
	}
	var events []string
	for _, one := range op.Answers {
		stream, _ := one.(Stream)
		for _, e := range stream {
			events = append(events, fmt.Sprintf("%s: %s", e.Name, schemaName(reflect.TypeOf(e.Data))))
		}
	}
	if events == nil {
		return "Done"
	}
	return "Done. The data of each event is JSON, of the schema that its name says: " + strings.Join(events, ", ")
}

func (w *writer) parameters(op *Operation) *yaml.Node {
	out := list()
	named := map[string]bool{}
	for _, p := range op.Parameters {
		named[p.Name] = true
		if p.About == "" || !slices.Contains([]string{"string", "integer", "boolean"}, p.Type) {
			w.wrong("nothing is said of the parameter %s of %s %s", p.Name, op.Method, op.Path)
		}
		one := mapping("name", p.Name, "in", p.In, "description", p.About)
		if p.In == "path" {
			set(one, "required", true)
		}
		set(one, "schema", mapping("type", p.Type))
		out.Content = append(out.Content, one)
	}
	for _, part := range strings.Split(op.Path, "{")[1:] {
		if name, _, _ := strings.Cut(part, "}"); !named[name] {
			w.wrong("nothing is said of {%s} in %s", name, op.Path)
		}
	}
	return out
}

// content is a body by its media type.
func (w *writer) content(op *Operation, body any) *yaml.Node {
	switch body := body.(type) {
	case Media:
		return mapping(string(body), mapping())
	case Stream:
		for _, e := range body {
			if w.ref(reflect.TypeOf(e.Data)) == nil {
				w.wrong("event %s of %s has no type", e.Name, op.Path)
			}
		}
		return mapping(mediaStream, mapping("schema", mapping("type", "string")))
	}
	return mapping(mediaJSON, mapping("schema", w.ref(reflect.TypeOf(body))))
}

// operationID is a name for programs that make clients: get_runs_id_events, post_runs_id_cancel.
func (d *Document) operationID(op *Operation) string {
	words := strings.FieldsFunc(strings.TrimPrefix(op.Path, d.Base), func(r rune) bool { return strings.ContainsRune("/{}:.-", r) })
	return strings.ToLower(op.Method) + "_" + strings.Join(words, "_")
}
