package capability

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// askWithin bounds how long one tool may take to say its version.
const askWithin = 10 * time.Second

// tools are what is looked for in PATH, and how each says its version. Whatever is found is the machine's own: it may be
// another one tomorrow, and nothing about it is verified (07§155).
var tools = []struct {
	id   string
	argv []string
}{
	{"cargo", []string{"cargo", "--version"}},
	{"gcc", []string{"gcc", "-dumpfullversion"}},
	{"git", []string{"git", "--version"}},
	{"go", []string{"go", "env", "GOVERSION"}},
	{"java", []string{"java", "--version"}},
	{"make", []string{"make", "--version"}},
	{"node", []string{"node", "--version"}},
	{"python", []string{"python3", "--version"}},
	{"rust", []string{"rustc", "--version"}},
}

var versionPattern = regexp.MustCompile(`[0-9]+(\.[0-9]+){1,3}`)

// toolchains asks those at once whose answers of before do not stand, and waits for every answer. What was said is kept in the
// file memory, if one is named.
func toolchains(ctx context.Context, memory string, now time.Time) []forge.Toolchain {
	known := recall(memory)
	answers := make([]answer, len(tools))
	asked := false
	var all sync.WaitGroup
	for i, tool := range tools {
		next, ok := toAsk(tool.argv[0], now)
		if before := known[tool.id]; ok && before.stands(next) {
			answers[i] = before
			continue
		}
		if ok {
			asked = true
			all.Go(func() {
				next.Version = ask(ctx, tool.argv)
				answers[i] = next
			})
		}
	}
	all.Wait()
	var found []forge.Toolchain
	said := map[string]answer{}
	for i, a := range answers {
		if a.Version != "" {
			found = append(found, forge.Toolchain{ID: tools[i].id, Version: a.Version, Source: forge.ToolchainHost, Warm: true})
			said[tools[i].id] = a
		}
	}
	if asked && memory != "" {
		remember(memory, said)
	}
	return found
}

func ask(ctx context.Context, argv []string) string {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = os.TempDir() // no project's pin of a version counts here
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return string(versionPattern.Find(out[:min(len(out), 1024)]))
}
