package archtest_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var markdownLink = regexp.MustCompile(`\]\(([^)#:]+)(?:#[^)]*)?\)`)

// deadLinks lists the relative links of a tree's documents that lead nowhere.
func deadLinks(t *testing.T, dir string) (dead []string, links int) {
	t.Helper()
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != dir && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin") {
			return fs.SkipDir
		}
		if filepath.Ext(name) != ".md" {
			return nil
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, match := range markdownLink.FindAllStringSubmatch(string(data), -1) {
			links++
			if _, err := os.Stat(filepath.Join(filepath.Dir(name), filepath.FromSlash(match[1]))); err != nil {
				dead = append(dead, name+" links to "+match[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return dead, links
}

func TestDocumentsLinkToWhatIsThere(t *testing.T) {
	dead, links := deadLinks(t, root)
	for _, link := range dead {
		t.Error(link)
	}
	if links == 0 {
		t.Error("no links found: the test tests nothing")
	}
}

func TestDeadLinksAreFound(t *testing.T) {
	dead, links := deadLinks(t, tree(t, map[string]string{
		"README.md":    "[a](docs/a.md), [b](docs/b.md#part), [c](https://example.com/x), [d](docs/)",
		"docs/a.md":    "[up](../README.md)",
		"docs/none.md": "[gone](gone.md#x)",
	}))
	if links != 5 || len(dead) != 2 {
		t.Errorf("of %d links these are dead: %v", links, dead)
	}
}
