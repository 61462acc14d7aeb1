package pipeline_test

import (
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// cacheOf plans a job with one cache, and says where its folder lies, or what is wrong with it.
func cacheOf(t *testing.T, path string) string {
	t.Helper()
	file, found := pipeline.Parse([]byte("version: 1\njobs: { a: { cache: { key: k, paths: ['" + path + "'] }, steps: [x] } }\n"))
	if file == nil {
		return "refused: " + found[0].What
	}
	plan, err := file.Expand(pipeline.Facts{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := plan.Job(plan.Nodes[0], &pipeline.Given{Project: "p", Trust: 2})
	if err != nil {
		t.Fatal(err)
	}
	at := d.Spec.Caches[0].Paths[0]
	for _, p := range found {
		at += "; " + p.What
	}
	return at
}

// Case B82: a folder, and all that is in it, are the same cache.
func TestACacheIsAFolderHoweverItIsWritten(t *testing.T) {
	for _, path := range []string{"dist", "dist/", "dist/*", "dist/**", "dist/**/*", "./dist"} {
		if got := cacheOf(t, path); got != "source/dist" {
			t.Errorf("%s: %s", path, got)
		}
	}
	for path, want := range map[string]string{
		"~/.npm/*": "home/.npm", "a/b/node_modules": "source/a/b/node_modules", "~/.cache": "home/.cache", "*": "refused", "dist/*.js": "refused", "~/*": "refused",
		"**/node_modules": "refused", "{a,b}": "refused", "/tmp": "refused", "../x": "refused", ".": "refused",
		"target": "source/target; a build in \"target\" goes by file times",
	} {
		if got := cacheOf(t, path); !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
