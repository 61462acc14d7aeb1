package httpapi

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/authority"
	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/cas/castest"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/ident"
)

// oddName is one that no header and no old archive can spell.
const oddName = "a \"b\"\n\x01ü;.txt"

// keep runs a job that keeps a tree, and returns the run.
func (w *world) keep(files map[string]string) (*api.Run, forge.TreeRef) {
	w.t.Helper()
	root, _ := castest.Tree(w.t, w.objects.Project(forge.DefaultProject), files)
	request := job("build")
	request.Spec.Outputs = []api.Output{{Name: "unused", Patterns: []string{"x"}}, {Name: "dist", Patterns: []string{"**"}}}
	run := w.submit(request)
	a := w.agent("one")
	c := a.take()
	a.seal(c)
	outputs := []forge.OutputRef{{Output: 1, Ref: root.Root, Tree: true}}
	w.must(w.objects.Deliver(w.ctx, c, outputs))
	m := &forge.Completion{
		Context: c, Message: ident.New[forge.MessageID](), Result: forge.Result{Class: forge.Succeeded}, Capture: forge.Succeeded,
		Log: a.sealOf(c), Outputs: outputs,
	}
	m.Hash = m.ResultHash()
	if answer := w.do(&authority.Complete{Fence: a.fence, Completion: m}); answer.Completion != forge.CompletionAccepted {
		w.t.Fatalf("completing: %+v", answer)
	}
	return run, root
}

// artifact is the one thing that a run has kept.
func (w *world) artifact(run *api.Run) api.Artifact {
	w.t.Helper()
	list, err := w.client.Artifacts(w.ctx, api.ArtifactFilter{Run: run.ID}, api.Page{})
	w.must(err)
	if len(list.Items) != 1 {
		w.t.Fatalf("kept: %+v", list.Items)
	}
	return list.Items[0]
}

func TestWhatAJobKeptIsListedByRunJobAndAttempt(t *testing.T) {
	w := newWorld(t)
	run, root := w.keep(map[string]string{"a": "1", "sub/b": "22", "sub/l": "-> b"})
	got := w.artifact(run)
	if got.Name != "dist" || got.ID != got.Attempt+".0" || got.Ref != root.Root.String() || got.Files == nil || *got.Files != 3 || *got.Bytes != 3 {
		t.Errorf("%+v", got)
	}
	for name, f := range map[string]api.ArtifactFilter{"job": {Job: run.Jobs[0].ID}, "attempt": {Attempt: got.Attempt}, "beginning": {Attempt: got.Attempt[:25]}} {
		list, err := w.client.Artifacts(w.ctx, f, api.Page{})
		if err != nil || len(list.Items) != 1 || !cmp.Equal(list.Items[0], got) {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
	_, err := w.client.Artifacts(w.ctx, api.ArtifactFilter{}, api.Page{})
	if p := w.problem(err); p.Code != api.CodeMalformed {
		t.Errorf("of nobody: %v", p)
	}
	for _, id := range []string{got.Attempt + ".1", got.Attempt + ".00", got.Attempt, got.Attempt + ".-1", "x.0"} {
		_, err := w.client.Artifact(w.ctx, id, "", api.Page{})
		if p := w.problem(err); p.Code != api.CodeNotFound {
			t.Errorf("%s: %v", id, p)
		}
	}
}

func TestAnArtifactIsListedFolderByFolderInPages(t *testing.T) {
	w := newWorld(t)
	run, _ := w.keep(map[string]string{"a": "1", "sub/b*": "22", "sub/c": "3", "sub/l": "-> b", oddName: "odd"})
	id := w.artifact(run).ID
	var names []string
	for cursor := ""; ; {
		page, err := w.client.Artifact(w.ctx, id, "sub", api.Page{Limit: 2, Cursor: cursor})
		w.must(err)
		for _, e := range page.Entries {
			names = append(names, e.Kind+" "+e.Name+" "+e.Target+strconv.FormatBool(e.Executable))
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if diff := cmp.Diff([]string{"file b true", "file c false", "link l bfalse"}, names); diff != "" {
		t.Error(diff)
	}
	root, err := w.client.Artifact(w.ctx, id, "", api.Page{})
	w.must(err)
	if len(root.Entries) != 3 || root.Entries[1].Name != oddName {
		t.Errorf("%+v", root.Entries)
	}
	for _, path := range []string{"nowhere", "a/b", "sub/../a", "sub/l/x", ".."} {
		_, err := w.client.Artifact(w.ctx, id, path, api.Page{})
		if p := w.problem(err); p.Code != api.CodeNotFound {
			t.Errorf("%s: %v", path, p)
		}
	}
}

// Case B58: exact bytes and length, whole and in ranges.
func TestAFileOfAnArtifactIsExactInEveryRange(t *testing.T) {
	w := newWorld(t)
	data := string(castest.Bytes(3, 700_001))
	run, _ := w.keep(map[string]string{"big": data, "empty": "", oddName: "odd", "l": "-> big", "sub/x": "x"})
	base := api.Base + "/artifacts/" + w.artifact(run).ID + "/content?path="
	size := len(data)
	for name, test := range map[string]struct {
		ranged string
		status int
		from   int
		to     int
	}{
		"whole":           {"", http.StatusOK, 0, size},
		"the first byte":  {"bytes=0-0", http.StatusPartialContent, 0, 1},
		"the middle":      {"bytes=300000-599999", http.StatusPartialContent, 300000, 600000},
		"from":            {"bytes=699999-", http.StatusPartialContent, 699999, size},
		"the last":        {"bytes=-7", http.StatusPartialContent, size - 7, size},
		"several":         {"bytes=0-1,5-9", http.StatusOK, 0, size},
		"beyond its end":  {"bytes=700001-", http.StatusRequestedRangeNotSatisfiable, 0, 0},
		"an absurd range": {"bytes=9-3", http.StatusRequestedRangeNotSatisfiable, 0, 0},
	} {
		r := w.ask(http.MethodGet, base+"big", "", "", "Range", test.ranged, "Accept-Encoding", "gzip, zstd")
		got := body(t, r)
		if r.StatusCode != test.status {
			t.Errorf("%s: %d", name, r.StatusCode)
		}
		if test.to > 0 && (got != data[test.from:test.to] || r.ContentLength != int64(test.to-test.from) || r.Header.Get("Content-Encoding") != "") {
			t.Errorf("%s: %d bytes, announced %d, %q", name, len(got), r.ContentLength, r.Header.Get("Content-Encoding"))
		}
	}
	whole := w.ask(http.MethodHead, base+"big", "", "")
	tag := whole.Header.Get("Etag")
	if whole.ContentLength != int64(size) || tag != strconv.Quote(digest.RefOf([]byte(data)).String()) {
		t.Errorf("its head: %d %s", whole.ContentLength, tag)
	}
	if r := w.ask(http.MethodGet, base+"big", "", "", "If-None-Match", tag); r.StatusCode != http.StatusNotModified {
		t.Errorf("with its tag: %d", r.StatusCode)
	}
	if r := w.ask(http.MethodGet, base+"empty", "", ""); r.StatusCode != http.StatusOK || r.ContentLength != 0 {
		t.Errorf("an empty file: %d, %d bytes", r.StatusCode, r.ContentLength)
	}
	for _, path := range []string{"l", "sub", ""} {
		if r := w.ask(http.MethodGet, base+path, "", ""); r.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("%q, which is no file: %d", path, r.StatusCode)
		}
	}
}

// Threat S18: what a job made is saved and never shown by this site, whatever its name says.
func TestWhatAJobMadeIsHandedOutAsHostile(t *testing.T) {
	w := newWorld(t)
	run, _ := w.keep(map[string]string{oddName: "<script>", "page.html": "<script>"})
	id := w.artifact(run).ID
	for _, path := range []string{"path=page.html", "path=a%20%22b%22%0A%01%C3%BC%3B.txt", "format=tar"} {
		r := w.ask(http.MethodGet, api.Base+"/artifacts/"+id+"/content?"+path, "", "")
		h := r.Header
		if r.StatusCode != http.StatusOK || strings.HasPrefix(h.Get("Content-Type"), "text/") || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment; filename") {
			t.Errorf("%s: %d %v", path, r.StatusCode, h)
		}
	}
}

// Cases B77, B78: links and the bit of programs stay.
func TestAnArchiveHoldsExactlyTheArtifact(t *testing.T) {
	w := newWorld(t)
	long := strings.Repeat("n", 200)
	run, _ := w.keep(map[string]string{
		"tool*": "run me", "sub/l": "-> ../tool", "dangling": "-> nowhere", oddName: "odd", "empty/": "", long + "/" + long: "deep",
	})
	in, err := w.client.ArtifactArchive(w.ctx, w.artifact(run).ID, "")
	w.must(err)
	defer func() { w.must(in.Close()) }()
	got := map[string]string{}
	for archive := tar.NewReader(in); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		}
		w.must(err)
		data, err := io.ReadAll(archive)
		w.must(err)
		got[h.Name] = strconv.FormatInt(h.Mode, 8) + " " + h.Linkname + string(data)
	}
	want := map[string]string{
		"tool": "755 run me", "sub/": "755 ", "sub/l": "777 ../tool", "dangling": "777 nowhere", oddName: "644 odd", "empty/": "755 ",
		long + "/": "755 ", long + "/" + long: "644 deep",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestDamagedBytesNeverLookLikeAWholeAnswer: nobody gets as many bytes as were announced unless they are the right ones.
func TestDamagedBytesNeverLookLikeAWholeAnswer(t *testing.T) {
	w := newWorld(t)
	data := castest.Bytes(4, 3<<20)
	run, _ := w.keep(map[string]string{"big": string(data)})
	id := w.artifact(run).ID
	w.damage(digest.RefOf(data))
	for name, header := range map[string]string{"whole": "", "its first bytes": "bytes=0-99"} {
		if n, err := w.readWhole(api.Base+"/artifacts/"+id+"/content?path=big", header); err == nil {
			t.Errorf("%s: %d bytes, as if nothing were wrong", name, n)
		}
		w.must(w.objects.Project(forge.DefaultProject).Put(w.ctx, digest.RefOf(data), bytes.NewReader(data)))
		w.damage(digest.RefOf(data))
	}
	in, err := w.client.ArtifactArchive(w.ctx, id, "")
	if err == nil {
		_, err = io.Copy(io.Discard, in)
		_ = in.Close()
	}
	if err == nil {
		t.Error("the archive comes to its end")
	}
}

// readWhole reads an answer to its end. It is an error where that is not the end that was announced, or a refusal.
func (w *world) readWhole(path, ranged string) (int, error) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.ctx, http.MethodGet, w.url+path, nil)
	w.must(err)
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Range", ranged)
	defer http.DefaultClient.CloseIdleConnections()
	r, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	data, err := io.ReadAll(r.Body)
	if err == nil && r.StatusCode >= http.StatusMultipleChoices {
		err = errors.New(r.Status)
	}
	return len(data), errors.Join(err, r.Body.Close())
}

// damage flips a bit of an object on the disk.
func (w *world) damage(ref digest.Ref) {
	w.t.Helper()
	name := strings.TrimPrefix(ref.Digest.String(), "b3:")
	found, err := filepath.Glob(filepath.Join(w.dir, "cas", "b3", name[:2], name))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("the file of %v: %v, %v", ref, found, err)
	}
	w.must(os.Chmod(found[0], 0o600))
	f, err := os.OpenFile(found[0], os.O_RDWR, 0)
	w.must(err)
	var b [1]byte
	_, err = f.ReadAt(b[:], int64(ref.Bytes)-1)
	w.must(err)
	b[0] ^= 1
	_, err = f.WriteAt(b[:], int64(ref.Bytes)-1)
	w.must(errors.Join(err, f.Close()))
}

// TestTheBeginningOfAnotherUploadIsNoHelpToWrongBytes: what the daemon holds already does not complete an object in the name of
// whoever sends another, and a wrong beginning does not stand in the way of the right bytes.
func TestTheBeginningOfAnotherUploadIsNoHelpToWrongBytes(t *testing.T) {
	w := newWorld(t)
	data := castest.Bytes(6, 3<<20)
	ref := digest.RefOf(data)
	wrong := bytes.Clone(data)
	wrong[0] ^= 1
	begin := func(text []byte) {
		r := w.ask(http.MethodPut, api.Base+"/cas/"+ref.String(), "", string(text), "Content-Type", api.TypeRawLog)
		if r.StatusCode != http.StatusAccepted {
			t.Fatalf("a beginning: %d %s", r.StatusCode, body(t, r))
		}
	}
	begin(data[:2<<20])
	var mismatch *cas.MismatchError
	if err := w.client.Objects("").Put(w.ctx, ref, bytes.NewReader(wrong)); !errors.As(err, &mismatch) {
		t.Errorf("wrong bytes: %v", err)
	}
	castest.Lacks(t, w.client.Objects(""), ref)
	w.must(w.client.Objects("").Put(w.ctx, ref, bytes.NewReader(data)))
	castest.Holds(t, w.client.Objects(""), ref, data)

	other := castest.Bytes(7, 3<<20)
	ref, wrong = digest.RefOf(other), wrong[:2<<20]
	begin(wrong)
	w.must(w.client.Objects("").Put(w.ctx, ref, bytes.NewReader(other)))
	castest.Holds(t, w.client.Objects(""), ref, other)
}

func TestATreeIsAskedForInOneQuestion(t *testing.T) {
	w := newWorld(t)
	memory := castest.NewMemory()
	root, _ := castest.Tree(t, memory, map[string]string{"a": "1", "sub/b": "22"})
	objects := w.client.Objects("")
	if has, err := objects.HasTree(w.ctx, root); has || err != nil {
		t.Errorf("before: %v, %v", has, err)
	}
	w.must(cas.Copy(w.ctx, objects, memory, []digest.Ref{root.Root}))
	if has, err := objects.HasTree(w.ctx, root); has || err != nil {
		t.Errorf("with its root alone: %v, %v", has, err)
	}
	w.must(cas.Copy(w.ctx, objects, memory, memory.Refs()))
	if has, err := objects.HasTree(w.ctx, root); !has || err != nil {
		t.Errorf("with all of it: %v, %v", has, err)
	}
	lie := tree.Totals{Files: 1, Bytes: 1, Depth: 1}.Ref(root.Root)
	if has, err := objects.HasTree(w.ctx, lie); has || err != nil {
		t.Errorf("with other totals: %v, %v", has, err)
	}
}
