//go:build unix

package capability

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// bench is a PATH with tools that count how often they are asked, and a file for what they say.
type bench struct {
	t                 *testing.T
	dir, memory, said string
	now               time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	return &bench{t: t, dir: dir, memory: filepath.Join(dir, "memory"), said: filepath.Join(dir, "said"), now: time.Now()}
}

// tool installs one that says something, or replaces it.
func (b *bench) tool(name, says string) {
	b.t.Helper()
	text := "#!/bin/sh\necho " + name + " >>" + b.said + "\n" + says + "\n"
	if err := os.WriteFile(filepath.Join(b.dir, name), []byte(text), 0o700); err != nil {
		b.t.Fatal(err)
	}
}

// look probes, and wants to find these toolchains after these tools were asked.
func (b *bench) look(what, found string, asked ...string) {
	b.t.Helper()
	if err := os.WriteFile(b.said, nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
	var got []string
	for _, chain := range toolchains(b.t.Context(), b.memory, b.now) {
		got = append(got, chain.ID+" "+chain.Version)
	}
	said, err := os.ReadFile(b.said)
	if err != nil {
		b.t.Fatal(err)
	}
	if strings.Join(got, ", ") != found || strings.Join(strings.Fields(string(said)), " ") != strings.Join(asked, " ") {
		b.t.Errorf("%s: found %q, asked %q; want %q, %q", what, got, strings.Fields(string(said)), found, asked)
	}
}

func TestAToolThatIsTheSameIsNotAskedByTheNextProcess(t *testing.T) {
	b := newBench(t)
	b.tool("git", "echo git version 2.40.1")
	b.look("the first process", "git 2.40.1", "git")
	b.look("the next", "git 2.40.1")
	b.tool("make", "echo GNU Make 4.3")
	b.look("with a new tool", "git 2.40.1, make 4.3", "make")
	b.look("both are known", "git 2.40.1, make 4.3")
	b.tool("git", "echo git version 2.41")
	b.look("with another file", "git 2.41, make 4.3", "git")
	if err := os.Chtimes(filepath.Join(b.dir, "git"), time.Time{}, b.now.Add(-24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	b.look("with another time", "git 2.41, make 4.3", "git")
	if err := os.Remove(filepath.Join(b.dir, "make")); err != nil {
		t.Fatal(err)
	}
	b.look("with one that is gone", "git 2.41")
}

func TestWhatAToolSaidStandsForAnHour(t *testing.T) {
	b := newBench(t)
	b.tool("git", "echo git version 2.40.1")
	b.look("the first process", "git 2.40.1", "git")
	b.now = b.now.Add(askAgain - 1)
	b.look("just before", "git 2.40.1")
	b.now = b.now.Add(1)
	b.look("an hour later", "git 2.40.1", "git")
	b.now = b.now.Add(-time.Minute)
	b.look("with a clock that was set back", "git 2.40.1", "git")
}

func TestOnlyAnswersAreRemembered(t *testing.T) {
	b := newBench(t)
	b.tool("git", "exit 1")
	b.look("one that fails", "", "git")
	b.look("one that fails again", "", "git")
	b.tool("git", "echo git version 2.40.1")
	b.look("one that works", "git 2.40.1", "git")
	for _, broken := range []string{"", "{", `{"git": 1}`, strings.Repeat(" ", maxMemory) + "{}"} {
		if err := os.WriteFile(b.memory, []byte(broken), 0o600); err != nil {
			t.Fatal(err)
		}
		b.look("with a broken memory", "git 2.40.1", "git")
	}
	b.memory = filepath.Join(b.dir, "nowhere", "memory")
	b.look("with a memory that cannot be kept", "git 2.40.1", "git")
}
