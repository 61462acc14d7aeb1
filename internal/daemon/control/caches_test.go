package control

import (
	"slices"
	"testing"

	"github.com/forgeyard/forgeyard/internal/cas"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// A cache below the source comes as a part of it. One whose folder the source has itself is none.
func TestACacheBelowTheSourceIsAPartOfIt(t *testing.T) {
	w, a := newStage(t)
	source := w.plant(map[string]string{"main.js": "1", "lib/x.js": "2", "vendor/kept": "3"})
	play := func(story outcome) *forge.JobSpec {
		t.Helper()
		run, _, err := w.Submit(w.ctx, Submission{Project: forge.DefaultProject, Trust: forge.TrustTrusted, Pipeline: &Pipeline{
			File: "p.yml", Source: &source, Text: []byte(`version: 1
jobs:
  a:
    cache: { key: k, paths: [node_modules, lib/.cache, vendor, ~/.npm] }
    steps: [x]
`),
		}})
		w.must(err)
		return w.play(a, run, map[string]outcome{"a": story})["a"]
	}
	outputs := func(s *forge.JobSpec) (all []string) {
		for _, o := range s.Outputs {
			all = append(all, o.Name+" "+o.Base)
		}
		return all
	}
	first := play(outcome{result: goes.result, leaves: map[string]map[string]string{
		"forgeyard.cache.0.0": {"left-pad/index.js": "pad"}, "forgeyard.cache.0.1": {"c": "cached"}, "forgeyard.cache.0.3": {"n": "npm"},
	}})
	if want := []string{"forgeyard.cache.0.0 source/node_modules", "forgeyard.cache.0.1 source/lib/.cache", "forgeyard.cache.0.3 home/.npm"}; !slices.Equal(outputs(first), want) {
		t.Errorf("the first is to leave %q", outputs(first))
	}
	if len(first.Inputs) != 1 || first.Inputs[0].Tree != source {
		t.Errorf("the first starts from %v", inputsOf(first))
	}
	second := play(goes)
	if len(second.Outputs) != 0 || len(second.Inputs) != 2 || second.Inputs[0].Mount != forge.SourceDir || second.Inputs[1].Mount != "home/.npm" {
		t.Fatalf("the second: %v, %q", inputsOf(second), outputs(second))
	}
	files, err := cas.ReadTree(w.ctx, w.objects, second.Inputs[0].Tree, 10, forge.KiB)
	w.must(err)
	if len(files) != 5 || string(files["node_modules/left-pad/index.js"]) != "pad" || string(files["lib/.cache/c"]) != "cached" ||
		string(files["lib/x.js"]) != "2" || string(files["vendor/kept"]) != "3" {
		t.Errorf("the source is %q", files)
	}
}

// Case B82: a folder, a folder with its slash, and what is in it mean the same to artifacts and to hashFiles.
func TestPatternsOfHashFilesAreThoseOfArtifacts(t *testing.T) {
	w := newWorld(t)
	source := w.plant(map[string]string{"dist/a": "1", "dist/b/c": "2", "other": "3", "x/dist": "4"})
	lists := [][]string{{"dist"}, {"dist/"}, {"dist/*"}, {"dist/**"}, {"dist/**/*"}, {"**"}, {"**", "!other", "!x"}, {"dist", "!dist/b"}, {"dist/a"}, {"nothing"}}
	hashes, err := w.hashes(w.ctx, forge.DefaultProject, &source, lists)
	w.must(err)
	whole, all, part, none := hashes["dist"], hashes["**"], hashes["dist/a"], hashes["nothing"]
	for _, same := range []string{"dist/", "dist/*", "dist/**", "dist/**/*", "**\n!other\n!x"} {
		if hashes[same] != whole {
			t.Errorf("%q is not dist", same)
		}
	}
	if hashes["dist\n!dist/b"] != part || whole == all || whole == part || part == none || all == none {
		t.Errorf("%v", hashes)
	}
	if _, err := w.hashes(w.ctx, forge.DefaultProject, &source, [][]string{{"[a"}}); err == nil {
		t.Error("a bracket that is not closed is taken")
	}
}
