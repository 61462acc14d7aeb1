package httpapi

import (
	"bytes"
	goflag "flag"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"io"
	"net/http"
	"os"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	documents "github.com/forgeyard/forgeyard/api"
	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/openapi"
)

var update = goflag.Bool("update", false, "write the description of the interface anew")

const descriptionFile = "../../../api/openapi.yaml"

// parameters say what each parameter of the table means, by its name; "path " before it is one of the path.
var parameters = map[string]openapi.Parameter{
	"path id":      {Type: "string", About: "an id, or the first characters of it, at least 4; of runners and access tokens the name as well"},
	"path ref":     {Type: "string", About: "an object: b3:, 64 hexadecimal digits, a colon and its size"},
	"path project": {Type: "string", About: "the name of a project"},
	"path name":    {Type: "string", About: "the name of a secret, which may have slashes in it"},

	"project": {Type: "string", About: "the name of a project; that of runs: all of them, that of objects: default"},
	"limit":   {Type: "integer", About: "the most items of one page, from 1 to 200"},
	"cursor":  {Type: "string", About: "next of the page before"},
	"state":   {Type: "string", About: "only those in this state: Planned, Running, Succeeded, Failed, Cancelled, Error"},

	"from_seq":    {Type: "integer", About: "the first frame; absent: the beginning"},
	"tail":        {Type: "integer", About: "only so many lines from the end; not with from_seq"},
	"follow":      {Type: "boolean", About: "go on until the log has ended"},
	"q":           {Type: "string", About: "a text to look for, instead of the log itself"},
	"ignore_case": {Type: "boolean", About: "whether capitals do not matter to the search"},
	"after":       {Type: "string", About: "next of the search before"},
	"format":      {Type: "string", About: "of a log: events (default) or raw; of a folder: tar"},

	"run":     {Type: "string", About: "of this run"},
	"job":     {Type: "string", About: "of this job"},
	"attempt": {Type: "string", About: "of this attempt"},
	"path":    {Type: "string", About: "a file or folder within, with slashes"},
	"version": {Type: "integer", About: "one version of the secret; absent: all of it"},

	"key":    {Type: "string", About: "one key"},
	"prefix": {Type: "string", About: "what keys begin with"},
	"all":    {Type: "boolean", About: "all of them"},

	"Idempotency-Key":  {In: "header", Type: "string", About: "a text of the caller's, at most 128 bytes: with the same one the same request is carried out once"},
	"Last-Event-ID":    {In: "header", Type: "string", About: "the id of the last event that was read, to go on behind it"},
	"Range":            {In: "header", Type: "string", About: "a part of the bytes, as in bytes=100-"},
	"Upload-Offset":    {In: "header", Type: "integer", About: "which byte of the object the body begins with"},
	"Content-Encoding": {In: "header", Type: "string", About: "zstd, where the body is compressed"},
}

// described is the interface as package openapi takes it.
func described(t *testing.T) *openapi.Document {
	t.Helper()
	d := &openapi.Document{
		Title: "Forgeyard", Version: strings.TrimPrefix(api.Base, "/api/"), Base: api.Base,
		About: "What a Forgeyard daemon can be asked. Durations are text such as 20m, sizes such as 4GiB, times RFC 3339 in UTC, ids ULIDs. " +
			"Requests are read strictly: a field that is not known is refused. Answers may gain fields.",
		Roles: []openapi.Role{
			{Name: viewer.String(), About: "sees runs, logs, artifacts and the runners; changes nothing"},
			{Name: developer.String(), About: "starts, retries and cancels runs, uploads what they need, sees the names of secrets"},
			{Name: admin.String(), About: "runners, tokens, secrets and the audit log"},
		},
		Custom: map[reflect.Type]string{
			reflect.TypeFor[api.Duration](): `{type: string, examples: ["1h30m", "10s", "250ms"]}`,
			reflect.TypeFor[api.Size]():     `{type: string, examples: ["512MiB", "4GiB"]}`,
			reflect.TypeFor[api.Cores]():    `{type: [number, string], examples: [0.5, 2]}`,
			reflect.TypeFor[api.ExitCode](): `{type: integer, minimum: 0, maximum: 255}`,
			reflect.TypeFor[api.Time]():     `{type: string, format: date-time}`,
			reflect.TypeFor[api.Code]():     "{type: string, enum: [" + strings.Join(codes(), ", ") + "]}",
		},
		Failure: reflect.TypeFor[api.Problem](), FailureMedia: api.TypeProblem, Comments: openapi.Comments{},
	}
	if err := d.Comments.Read(reflect.TypeFor[api.Run]().PkgPath(), "../../api"); err != nil {
		t.Fatal(err)
	}
	d.Comments["time.Time"] = "A moment, in UTC."
	for _, rt := range (&Server{}).table() {
		d.Operations = append(d.Operations, operations(rt)...)
	}
	return d
}

// codes are the codes that a daemon sends.
func codes() (texts []string) {
	for _, code := range api.Codes() {
		texts = append(texts, string(code))
	}
	return texts
}

// operations is a route as what can be done with it: one thing, or as many as it has verbs.
func operations(rt route) []openapi.Operation {
	op := openapi.Operation{
		Method: rt.method, Path: strings.ReplaceAll(rt.pattern(), "...}", "}"), About: rt.about, Body: payload(rt.in), Status: rt.status, Answers: answers(rt.out),
	}
	if rt.role != anybody {
		op.Role = rt.role.String()
	}
	for _, part := range strings.Split(op.Path, "{")[1:] {
		name, _, _ := strings.Cut(part, "}")
		op.Parameters = append(op.Parameters, parameter("path "+name, name, "path"))
	}
	for name := range strings.FieldsSeq(rt.with) {
		op.Parameters = append(op.Parameters, parameter(name, name, "query"))
	}
	if len(rt.verbs) == 0 {
		return []openapi.Operation{op}
	}
	var all []openapi.Operation
	for _, verb := range rt.verbs {
		one := op
		one.Path, one.About = op.Path+":"+verb.name, verb.about
		all = append(all, one)
	}
	return all
}

func parameter(key, name, in string) openapi.Parameter {
	p := parameters[key]
	p.Name = name
	if p.In == "" {
		p.In = in
	}
	return p
}

// payload is what goes in, or one of what may come out.
func payload(of any) any {
	switch of := of.(type) {
	case media:
		return openapi.Media(of)
	case feed:
		var events openapi.Stream
		for _, e := range of {
			events = append(events, openapi.Event{Name: e.name, Data: e.data})
		}
		return events
	}
	return of
}

func answers(of any) []any {
	switch of := of.(type) {
	case nil:
		return nil
	case several:
		var all []any
		for _, one := range of {
			all = append(all, payload(one))
		}
		return all
	}
	return []any{payload(of)}
}

func TestTheDescriptionOfTheInterfaceIsNotStale(t *testing.T) {
	want, err := described(t).YAML()
	if err != nil {
		t.Fatal(err)
	}
	want = append([]byte("# Made from the code: go test ./internal/daemon/httpapi -run Description -update\n"), want...)
	if *update {
		if err := os.WriteFile(descriptionFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(descriptionFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("api/openapi.yaml is stale; run go test ./internal/daemon/httpapi -run Description -update\n%s", diff)
	}
}

func TestTheDocumentsAreThereForAnybody(t *testing.T) {
	w := newWorld(t)
	for path, want := range map[string][]byte{"/schema/openapi.v1.yaml": documents.OpenAPI, "/schema/pipeline.v1.json": documents.PipelineSchema} {
		answer, err := http.Get(w.url + path)
		w.must(err)
		got, err := io.ReadAll(answer.Body)
		w.must(err)
		if _ = answer.Body.Close(); answer.StatusCode != http.StatusOK || !bytes.Equal(got, want) || len(got) == 0 {
			t.Errorf("%s: %s, %d bytes", path, answer.Status, len(got))
		}
	}
	http.DefaultClient.CloseIdleConnections()
}

// The client of package api, which is all that the command line has, asks for nothing that the table does not have.
func TestTheClientAsksOnlyForRoutesOfTheTable(t *testing.T) {
	known := map[string]bool{}
	anything := regexp.MustCompile(`\{[^}]*\}`)
	for _, rt := range (&Server{}).table() {
		path := anything.ReplaceAllString(rt.path, "{}")
		known[rt.method+" "+path] = len(rt.verbs) == 0
		for _, verb := range rt.verbs {
			known[rt.method+" "+path+":"+verb.name] = true
		}
	}
	asked := clientCalls(t, "../../api")
	for _, call := range asked {
		if verbs := known[strings.Replace(call, ":{}", ":"+"drain", 1)]; !known[call] && !verbs { // a verb of runners is a parameter
			t.Errorf("the client asks for %s", call)
		}
	}
	if len(asked) < 40 {
		t.Errorf("only %d calls were found: %q", len(asked), asked)
	}
}

// clientCalls lists what a client asks for, as its sources say: "GET runs/{}".
func clientCalls(t *testing.T, dir string) (calls []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(gotoken.NewFileSet(), dir+"/"+e.Name(), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if name, named := litType(lit, ok); !named || name != "call" {
				return true
			}
			var method, path string
			for _, elt := range lit.Elts {
				kv, ok := elt.(*ast.KeyValueExpr)
				if !ok {
					continue
				}
				switch kv.Key.(*ast.Ident).Name {
				case "method":
					if sel, ok := kv.Value.(*ast.SelectorExpr); ok {
						method = strings.ToUpper(strings.TrimPrefix(sel.Sel.Name, "Method"))
					}
				case "path":
					path = pathOf(kv.Value)
				}
			}
			calls = append(calls, method+" "+path)
			return true
		})
	}
	return calls
}

func litType(lit *ast.CompositeLit, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	name, ok := lit.Type.(*ast.Ident)
	if !ok {
		return "", false
	}
	return name.Name, true
}

// pathOf is a path as an expression makes it; what is not known before is {}.
func pathOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, _ := strconv.Unquote(e.Value)
		return text
	case *ast.BinaryExpr:
		return pathOf(e.X) + pathOf(e.Y)
	case *ast.CallExpr:
		if fun, ok := e.Fun.(*ast.Ident); ok && fun.Name == "one" {
			var parts []string
			for _, arg := range e.Args {
				parts = append(parts, pathOf(arg))
			}
			return strings.Join(parts, "/")
		}
	}
	return "{}"
}
