// Command picture makes docs/images/run.svg: it runs a small pipeline at a terminal of the kernel, as a person types it, and
// draws what that person sees.
//
//	go run ./tools/picture [-o FILE]
//
// Nothing in the picture is made up. It has two states of one terminal: while jobs run, and at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"
)

// limit bounds everything, the build of the command included.
const limit = 10 * time.Minute

func main() {
	out := flag.String("o", "docs/images/run.svg", "file to write")
	flag.Parse()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	if err := picture(ctx, *out); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// repository is what the pipeline of the picture runs on.
var repository = map[string]string{
	".forgeyard.yml": `version: 1
jobs:
  lint:
    steps: [{ name: vet, run: ./vet }]
  test:
    needs: lint
    matrix: { axes: { os: [linux, mac] }, fail_fast: false }
    env: { SYSTEM: "${{ matrix.os }}" }
    steps: [{ name: unit, run: ./unit }]
  docs:
    needs: lint
    steps: [{ name: pages, run: ./pages }]
  release:
    needs: [test, docs]
    steps: [./release]
`,
	"vet": `#!/bin/sh
echo '::warning file=server.go,line=88::unused parameter ctx'
printf '\033[32mvetted\033[0m 42 packages\n'
`,
	"unit": `#!/bin/sh
echo '::group::packages'
for p in store queue lease; do sleep 0.4; printf '\033[32mok\033[0m   example.org/yard/%s\n' $p; done
echo '::endgroup::'
for i in 20 40 60 80; do printf '\rintegration %d%%' $i; sleep 0.5; done
if test $SYSTEM = mac; then
	printf '\r--- FAIL: TestRename (0.04s)\n'
	echo '::error file=rename_test.go,line=31::got "Readme", want "README"'
	exit 1
fi
sleep 4
printf '\rintegration 100%%\n'
`,
	"pages": `#!/bin/sh
for p in index install reference; do sleep 0.8; echo "wrote $p.html"; done
sleep 3
`,
	"release": "#!/bin/sh\necho released\n",
}

func picture(ctx context.Context, out string) error {
	if runtime.GOOS != "linux" {
		return errors.New("terminals of Linux are needed")
	}
	dir, err := os.MkdirTemp("", "picture")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder of temporary files
	program := filepath.Join(dir, "forgeyard")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./cmd/forgeyard")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("build the command: %w", err)
	}
	repo := filepath.Join(dir, "yard")
	if err := os.Mkdir(repo, 0o700); err != nil {
		return err
	}
	for name, text := range repository {
		if err := os.WriteFile(filepath.Join(repo, name), []byte(text), 0o700); err != nil { //nolint:gosec // scripts
			return err
		}
	}
	during, after, err := sit(ctx, program, repo, filepath.Join(dir, "home"))
	if err != nil {
		return err
	}
	return os.WriteFile(out, svg(during, after), 0o644) //nolint:gosec // for all to see
}
