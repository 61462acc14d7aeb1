package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/forgeyard/forgeyard/internal/pipeline"
)

// files makes a folder with files in it and goes there.
func files(t *testing.T, names map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range names {
		at := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	return dir
}

func TestInitWritesAPipelineForWhatItSees(t *testing.T) {
	for _, c := range []struct {
		files string // that are there
		jobs  string // that are written
		steps string // part of the file
	}{
		{"", "hello", "write here what builds"},
		{"go.mod", "go", "go test ./..."},
		{"go.mod go.sum Makefile", "go", "network: host"},
		{"package.json package-lock.json", "node", "npm ci"},
		{"package.json pnpm-lock.yaml", "node", "pnpm install --frozen"},
		{"package.json yarn.lock", "node", "yarn install"},
		{"package.json", "node", "npm install"},
		{"Cargo.toml", "rust", "cargo test"},
		{"requirements.txt", "python", "install -r requirements.txt"},
		{"pyproject.toml", "python", "pip install ."},
		{"pom.xml src/main/java/A.java", "java", "mvn --batch-mode"},
		{"build.gradle.kts gradlew", "gradle", "./gradlew"},
		{"CMakeLists.txt", "cmake", "ctest"},
		{"configure.ac Makefile.am", "autotools", "autoreconf"},
		{"configure.ac autogen.sh", "autotools", "autogen.sh"},
		{"configure", "autotools", "./configure"},
		{"src/A.java", "javac", "javac -d classes"},
		{"Makefile", "make", "- make\n"},
		{"go.mod package.json CMakeLists.txt", "go node cmake", "npm test"},
	} {
		t.Run(strings.ReplaceAll(c.files, "/", "-"), func(t *testing.T) {
			there := map[string]string{}
			for _, name := range strings.Fields(c.files) {
				there[name] = ""
			}
			files(t, there)
			newWorld(t).run("init").want(t, 0, ".forgeyard.yml", "forgeyard run")
			text, err := os.ReadFile(".forgeyard.yml")
			if err != nil {
				t.Fatal(err)
			}
			f, found := pipeline.Parse(text)
			if f == nil || len(found) > 0 {
				t.Fatalf("%s\n%v", text, found)
			}
			var keys []string
			for _, j := range f.Jobs {
				keys = append(keys, string(j.Key))
			}
			if got := strings.Join(keys, " "); got != c.jobs || !strings.Contains(string(text), c.steps) {
				t.Errorf("jobs %s, want %s with %s:\n%s", got, c.jobs, c.steps, text)
			}
			newWorld(t).run("lint").want(t, 0, "", "is good")
			newWorld(t).run("plan").want(t, 0, keys[0], "")
		})
	}
}

func TestInitLooksIntoFilesForTests(t *testing.T) {
	files(t, map[string]string{"Makefile": "all:\n\ncheck:\n\ttrue\n"})
	newWorld(t).run("init", "--print").want(t, 0, "- make check", "")
	files(t, map[string]string{"pyproject.toml": "[project.optional-dependencies]\ntest = ['pytest']\n"})
	newWorld(t).run("init", "--print").want(t, 0, "-m pytest", "")
}

func TestInitWritesOverNothing(t *testing.T) {
	dir := files(t, map[string]string{".forgeyard.yml": "mine\n", "go.mod": "module x\n"})
	newWorld(t).run("init").want(t, 64, "", "forgeyard init --force")
	if text, err := os.ReadFile(".forgeyard.yml"); err != nil || string(text) != "mine\n" {
		t.Fatalf("%s %v", text, err)
	}
	outside := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(outside, []byte("other\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(".forgeyard.yml"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, ".forgeyard.yml"); err != nil {
		t.Fatal(err)
	}
	newWorld(t).run("init").want(t, 64, "", "there is a "+filepath.Join(dir, ".forgeyard.yml"))
	newWorld(t).run("init", "--force").want(t, 0, ".forgeyard.yml", "made for Go")
	if text, err := os.ReadFile(outside); err != nil || string(text) != "other\n" {
		t.Errorf("a link was followed: %s %v", text, err)
	}
}
