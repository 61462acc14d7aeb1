package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/pipeline"
)

func TestLintTellsEverythingThatIsWrong(t *testing.T) {
	files(t, map[string]string{
		".forgeyard.yml": "version: 1\njobs:\n  a:\n    needs: b\n    tiemout: 5m\n    steps: [x]\n",
		"good.yml":       "version: 1\njobs:\n  a: { matrix: { axes: { x: [y] } }, steps: [x] }\n",
	})
	r := newWorld(t).run("lint")
	r.want(t, 64, ".forgeyard.yml:4:12: there is no job \"b\" [FY1008]\n 4 |     needs: b\n   |            ^\n", ".forgeyard.yml: 2 problems to correct")
	if strings.Contains(r.stdout, "\x1b") {
		t.Error("colours where there is no terminal")
	}
	newWorld(t).run("lint", "good.yml").want(t, 0, `nothing here reads the axis "x"`, "good.yml can run: 1 job, with advice: 1")
	r = newWorld(t).run("lint", "-o", "json", "good.yml", ".forgeyard.yml")
	var got struct {
		Files []struct {
			File     string
			OK       bool
			Problems []struct {
				Code         string
				Line, Column int
				Advice       bool
			}
		}
	}
	if err := json.Unmarshal([]byte(r.stdout), &got); err != nil || r.code != 64 {
		t.Fatal(err, r)
	}
	if f := got.Files; len(f) != 2 || !f[0].OK || !f[0].Problems[0].Advice || f[1].OK || f[1].Problems[1].Line != 5 || f[1].Problems[1].Code != "FY1002" {
		t.Errorf("%+v", got)
	}
}

// Case B93: what is no pipeline file is one clear line, with what to do.
func TestWhatIsNoPipelineFileIsOneLine(t *testing.T) {
	files(t, map[string]string{
		"empty.yml": "", "latin.yml": "version: 1\nname: \xe9\n", "folder/x": "",
		"large.yml": "version: 1\n#" + strings.Repeat("x", pipeline.MaxFileBytes),
		"evil.yml":  "version: 1\n\x1b]0;title\x07: 1\n",
	})
	if err := os.WriteFile("locked.yml", []byte("version: 1\n"), 0o000); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"":           "there is no .forgeyard.yml in this folder\nWrite a first one with: forgeyard init",
		"nope.yml":   "there is no nope.yml",
		"folder":     "folder is a folder",
		"large.yml":  "more than 1048576 bytes",
		"empty.yml":  "write one with: forgeyard init",
		"latin.yml":  "latin.yml:2:7: the file is not UTF-8; save the file as UTF-8",
		"locked.yml": "locked.yml cannot be read: permission denied",
		"evil.yml":   "not YAML",
		"folder/x/y": "there is no folder/x/y",
	} {
		if name == "locked.yml" && os.Geteuid() == 0 {
			continue // nothing is locked for this user
		}
		args := []string{"lint"}
		if name != "" {
			args = append(args, name)
		}
		r := newWorld(t).run(args...)
		if said := r.stdout + r.stderr; r.code != 64 || !strings.Contains(said, want) || strings.Contains(said, "\x1b") || strings.Count(said, "\n") > 6 {
			t.Errorf("%s: code %d\n%s", name, r.code, said)
		}
	}
}

func TestLintFindsTheFileAboveWithinARepositoryOnly(t *testing.T) {
	dir := files(t, map[string]string{".forgeyard.yml": "version: 1\njobs: {a: {steps: [x]}}\n", "a/b/c": ""})
	t.Chdir("a/b")
	newWorld(t).run("lint").want(t, 64, "", "there is no .forgeyard.yml in this folder")
	if err := os.Mkdir(dir+"/.git", 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"HEAD": "ref: refs/heads/main\n", "config": ""} {
		if err := os.WriteFile(dir+"/.git/"+name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []string{"objects", "refs"} {
		if err := os.Mkdir(dir+"/.git/"+d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	newWorld(t).run("lint").want(t, 0, "", "../../.forgeyard.yml is good: 1 job")
}

func TestLintReadsStandardInputAndPrintsTheSchema(t *testing.T) {
	w := newWorld(t)
	w.stdin = "version: 1\njobs: {a: {steps: [x]}}\n"
	w.run("lint", "-").want(t, 0, "", "standard input is good")
	newWorld(t).run("lint", "--schema").want(t, 0, string(pipeline.Schema()), "")
}
