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

// toolchains asks all of them at once and waits for every answer.
func toolchains(ctx context.Context) []forge.Toolchain {
	versions := make([]string, len(tools))
	var all sync.WaitGroup
	for i, tool := range tools {
		if _, err := exec.LookPath(tool.argv[0]); err != nil {
			continue
		}
		all.Go(func() { versions[i] = ask(ctx, tool.argv) })
	}
	all.Wait()
	var found []forge.Toolchain
	for i, version := range versions {
		if version != "" {
			found = append(found, forge.Toolchain{ID: tools[i].id, Version: version, Source: forge.ToolchainHost, Warm: true})
		}
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
