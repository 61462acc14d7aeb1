package cli_test

import (
	"archive/tar"
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/cas/tree"
	"github.com/forgeyard/forgeyard/internal/digest"
)

// artifact makes the fake daemon have a run that has kept one file, of which it sends another content.
func (f *fake) artifact(t *testing.T, kept, sent string) {
	t.Helper()
	var b tree.Builder
	if err := b.Add("app", tree.Entry{Kind: tree.File, Ref: digest.RefOf([]byte(kept)), Executable: true}); err != nil {
		t.Fatal(err)
	}
	root, _, err := b.Build(func(digest.Ref, []byte) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	f.on("GET /runs/{id}", func(*http.Request) any { return ended("Succeeded", 0) })
	f.on("GET /artifacts", func(*http.Request) any {
		return &api.List[api.Artifact]{Items: []api.Artifact{
			{ID: attemptID + ".0", Name: "forgeyard.outputs", Job: jobID, JobKey: "run", Tree: true, Ref: root.Root.String()},
			{ID: attemptID + ".1", Name: "bin", Job: jobID, JobKey: "run", Tree: true, Ref: root.Root.String()},
		}}
	})
	f.serve("GET /artifacts/{id}/content", func(w http.ResponseWriter, _ *http.Request) {
		var archive bytes.Buffer
		out := tar.NewWriter(&archive)
		_ = out.WriteHeader(&tar.Header{Name: "app", Typeflag: tar.TypeReg, Size: int64(len(sent)), Mode: 0o755})
		_, _ = out.Write([]byte(sent))
		_ = out.Close()
		w.Header().Set("Content-Type", api.TypeTar)
		_, _ = w.Write(archive.Bytes())
	})
}

func TestWhatIsDownloadedIsWhatItsDigestSays(t *testing.T) {
	f := newFake(t)
	f.artifact(t, "as kept", "as kept")
	dir := t.TempDir()
	f.world(t).run("artifact", "download", runID, "--dir", dir).want(t, 0, "", "1 file")
	file := filepath.Join(dir, "run", "bin", "app")
	if text, err := os.ReadFile(file); err != nil || string(text) != "as kept" {
		t.Errorf("%q, %v", text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "run", "forgeyard.outputs")); err == nil {
		t.Error("what was kept for other jobs came too")
	}
	f = newFake(t)
	f.artifact(t, "as kept", "as lost")
	f.world(t).run("artifact", "download", runID, "--dir", t.TempDir()).want(t, 3, "", "what came is not bin, whose digest is b3:")
	f.world(t).run("artifact", "get", runID, "--to", t.TempDir()).want(t, 3, "", "do not use it")
}

// What may be many is not forgotten without a word. There is no terminal in tests: it has to be on the command line.
func TestManyCachesAreForgottenOnlyWhenThatIsSaid(t *testing.T) {
	f := newFake(t)
	asked := ""
	f.on("DELETE /projects/{project}/caches", func(r *http.Request) any {
		asked = r.PathValue("project") + "?" + r.URL.RawQuery
		return &api.CachesRemoved{Removed: 2, Bytes: 2048}
	})
	for _, args := range [][]string{{"--all"}, {"--prefix", "go-"}} {
		w := f.world(t)
		w.stdin = "y\n"
		w.run(append([]string{"cache", "rm"}, args...)...).want(t, 64, "", "say --yes, since there is no terminal")
	}
	if asked != "" {
		t.Errorf("asked for %s", asked)
	}
	f.world(t).run("cache", "rm", "--prefix", "go-", "--yes", "--project", "web").want(t, 0, "", "forgotten: 2, 2 KiB")
	if asked != "web?prefix=go-" {
		t.Errorf("asked for %s", asked)
	}
	f.world(t).run("cache", "rm", "a", "b").want(t, 0, "", "forgotten: 4, 4 KiB")
	if !strings.HasSuffix(asked, "default?key=b") {
		t.Errorf("asked for %s", asked)
	}
	for _, args := range [][]string{{}, {"a", "--all"}, {"--all", "--prefix", "x"}} {
		f.world(t).run(append([]string{"cache", "rm"}, args...)...).want(t, 64, "", "one of them")
	}
}
