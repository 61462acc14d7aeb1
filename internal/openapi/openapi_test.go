package openapi_test

import (
	"reflect"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/forgeyard/forgeyard/internal/openapi"
)

// Problem is why.
type Problem struct {
	Code string `json:"code"`
}

// Thing is described.
type Thing struct {
	// Name is above.
	Name  string            `json:"name"`
	Count *int              `json:"count,omitempty"` // behind
	Bytes []byte            `json:"bytes,omitempty"`
	Tags  map[string]string `json:"tags,omitempty"`
	Below []Thing           `json:"below,omitempty"`
	inner int
	Embedded
}

// Embedded is a part.
type Embedded struct {
	Size uint8 `json:"size"`
}

// Page is a page.
type Page[T any] struct {
	Items []T `json:"items"`
}

type undescribed struct {
	Name string `json:"name"`
}

// Own writes itself.
type Own struct{}

func (Own) MarshalText() ([]byte, error) { return nil, nil }

// Nameless has no name in JSON.
type Nameless struct{ Field string }

func document(t *testing.T, ops ...openapi.Operation) *openapi.Document {
	t.Helper()
	d := &openapi.Document{
		Title: "T", Version: "v1", About: "A", Base: "/v1", Operations: ops, Failure: reflect.TypeFor[Problem](), FailureMedia: "application/problem+json",
		Comments: openapi.Comments{},
	}
	// The types of this test stand in a test, which Read leaves out.
	for name, about := range map[string]string{"Problem": "Why.", "Thing": "A thing.", "Thing.Name": "Above.", "Thing.Count": "Behind.", "Page": "A page.", "Own": "Own.", "Nameless": "N."} {
		d.Comments[reflect.TypeFor[Thing]().PkgPath()+"."+name] = about
	}
	return d
}

func TestATypeIsDescribedAsItsJSONIs(t *testing.T) {
	_ = Thing{inner: 1}
	text, err := document(t, openapi.Operation{
		Method: "GET", Path: "/v1/things/{id}", About: "things", Role: "viewer", Status: 200, Answers: []any{Page[Thing]{}, openapi.Stream{{Name: "end", Data: Thing{}}}},
		Parameters: []openapi.Parameter{{Name: "id", In: "path", About: "which", Type: "string"}},
	}).YAML()
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Paths      map[string]map[string]any
		Components struct {
			Schemas map[string]struct {
				Properties map[string]map[string]any
				Required   []string
			}
		}
	}
	if err := yaml.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	op := got.Paths["/v1/things/{id}"]["get"].(map[string]any)
	if op["operationId"] != "get_things_id" || op["x-role"] != "viewer" || !strings.Contains(string(text), "end: Thing") {
		t.Errorf("the operation: %v", op)
	}
	thing := got.Components.Schemas["Thing"]
	if strings.Join(thing.Required, " ") != "name size" {
		t.Errorf("required are %q", thing.Required)
	}
	for field, want := range map[string]string{"name": "type string", "count": "type integer", "bytes": "contentEncoding base64", "size": "minimum 0", "tags": "type object", "below": "type array"} {
		key, value, _ := strings.Cut(want, " ")
		if s := thing.Properties[field]; strings.TrimSpace(yamlText(t, s[key])) != value {
			t.Errorf("%s is %v, without %s", field, s, want)
		}
	}
	if thing.Properties["name"]["description"] != "Above." || thing.Properties["count"]["description"] != "Behind." || len(thing.Properties) != 6 {
		t.Errorf("fields: %v", thing.Properties)
	}
	if _, ok := got.Components.Schemas["ThingPage"]; !ok {
		t.Error("a page of things has no schema of its own")
	}
}

func yamlText(t *testing.T, v any) string {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestWhatNothingIsSaidAboutIsAnError(t *testing.T) {
	good := openapi.Operation{Method: "GET", Path: "/v1/x", About: "x", Status: 200}
	if _, err := document(t, good).YAML(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*openapi.Operation){
		"nothing is said of GET /v1/x":          func(o *openapi.Operation) { o.About = "" },
		"nothing is said of {id}":               func(o *openapi.Operation) { o.Path += "/{id}" },
		"nothing is said of the parameter q":    func(o *openapi.Operation) { o.Parameters = []openapi.Parameter{{Name: "q", In: "query"}} },
		"nothing is said of the type":           func(o *openapi.Operation) { o.Body = undescribed{} },
		"writes its JSON itself":                func(o *openapi.Operation) { o.Body = Own{} },
		"field Field of .* has no name in JSON": func(o *openapi.Operation) { o.Body = Nameless{} },
		"cannot be described":                   func(o *openapi.Operation) { o.Body = func() {} },
	} {
		op := good
		change(&op)
		_, err := document(t, op).YAML()
		begin, end, _ := strings.Cut(want, ".* ")
		if err == nil || !strings.Contains(err.Error(), begin) || !strings.Contains(err.Error(), end) {
			t.Errorf("%s: %v", want, err)
		}
	}
	if _, err := document(t, good, good).YAML(); err == nil || !strings.Contains(err.Error(), "stands there twice") {
		t.Errorf("twice: %v", err)
	}
}

func TestCommentsAreReadFromTheSources(t *testing.T) {
	c := openapi.Comments{}
	if err := c.Read("x/openapi", "."); err != nil {
		t.Fatal(err)
	}
	if got := c["x/openapi.Event"]; got != "Event is one kind of event: its name, and a value of the type of its data." {
		t.Errorf("of a type: %q", got)
	}
	if got := c["x/openapi.Document.Base"]; got != "the path that most operations are below; their names leave it out" {
		t.Errorf("of a field: %q", got)
	}
	if _, ok := c["x/openapi_test.Thing"]; ok || c["x/openapi.Thing"] != "" {
		t.Error("tests are read")
	}
}
