//go:build linux

package fleet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// BuiltAlready is the variable that names a folder with the programs; where it is set, nothing is compiled.
const BuiltAlready = "FORGEYARD_STORY_PROGRAMS"

// Programs is where the programs are.
type Programs struct {
	Daemon, Agent, Command string
}

// Build is programs that are compiled when they are first asked for. Its zero value is ready, and may be asked by several
// goroutines.
type Build struct {
	once     sync.Once
	folder   string
	programs Programs
	err      error
}

// Programs compiles the programs of the module in the present folder, or above it, or returns what an earlier call came to.
func (b *Build) Programs(ctx context.Context) (Programs, error) {
	b.once.Do(func() {
		if folder := os.Getenv(BuiltAlready); folder != "" {
			b.programs = in(folder)
			return
		}
		if b.folder, b.err = os.MkdirTemp("", "fybin"); b.err == nil {
			b.programs, b.err = compile(ctx, b.folder)
		}
	})
	return b.programs, b.err
}

// Remove takes away what was compiled. It is called once nothing of it runs and nobody asks any more.
func (b *Build) Remove() {
	if b.folder != "" {
		_ = os.RemoveAll(b.folder)
	}
}

func compile(ctx context.Context, into string) (Programs, error) {
	names := []string{"forgeyard-daemon", "forgeyard-agent", "forgeyard", "forgeyard-sandbox"}
	const module = "github.com/forgeyard/forgeyard/cmd/"
	args := []string{"build", "-o", into + string(filepath.Separator)}
	for _, name := range names {
		args = append(args, module+name)
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("build the programs: %w\n%s", err, out)
	}
	return in(into), nil
}

func in(folder string) Programs {
	return Programs{
		Daemon:  filepath.Join(folder, "forgeyard-daemon"),
		Agent:   filepath.Join(folder, "forgeyard-agent"),
		Command: filepath.Join(folder, "forgeyard"),
	}
}
