package lifecycle_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden file and the pictures anew")

// pictures is where the pictures are, seen from here.
const pictures = "../../docs/states"

// golden compares a file with what it should say, or writes it.
func golden(t *testing.T, file, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(got), want); diff != "" {
		t.Errorf("%s is stale; if the table is right, go test ./internal/lifecycle -update (-file +table):\n%s", file, diff)
	}
}

func TestEveryPairOfStateAndEventIsDecidedAsWrittenDown(t *testing.T) {
	var b strings.Builder
	b.WriteString("# machine state event result\n")
	for _, m := range machines() {
		for state, name := range m.names {
			for _, event := range m.events {
				result := "illegal"
				if to, err := m.next(state, event); err == nil {
					result = m.names[to]
				}
				fmt.Fprintf(&b, "%s %s %s %s\n", m.name, name, event, result)
			}
		}
	}
	golden(t, "testdata/transitions.golden", b.String())
}

func TestThePicturesShowTheTables(t *testing.T) {
	for _, m := range machines() {
		page := fmt.Sprintf("# The states of %s %s\n\n", article(m.name), m.name) +
			fmt.Sprintf("Drawn from its table in [lifecycle/%s](../../internal/lifecycle/%s) by\n", m.file, m.file) +
			"`go test ./internal/lifecycle -update`; a test fails when it is stale.\n\n" +
			"```mermaid\n" + m.draw() + "```\n"
		golden(t, filepath.Join(pictures, m.name+".md"), page)
	}
}

func article(noun string) string {
	if strings.ContainsRune("aeiou", rune(noun[0])) {
		return "an"
	}
	return "a"
}

func TestAPictureBeginsAtTheFirstStateAndEndsWhereNothingLeaves(t *testing.T) {
	for _, m := range machines() {
		picture := m.draw()
		if want := "[*] --> " + m.names[0] + "\n"; !strings.Contains(picture, want) {
			t.Errorf("%s: the picture lacks %q", m.name, want)
		}
		for state, name := range m.names {
			if ends := strings.Contains(picture, name+" --> [*]\n"); ends != m.ended[state] {
				t.Errorf("%s: %s ends in the picture: %v", m.name, name, ends)
			}
		}
	}
}
