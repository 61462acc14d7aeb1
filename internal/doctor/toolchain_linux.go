package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	maxPathFolders = 256 // of PATH that are looked at
	maxNamed       = 4   // tools that are named of each
)

// tools are programs by which a folder of PATH is seen to be a toolchain's.
var tools = []string{
	"bun", "bundle", "cargo", "clang", "cmake", "composer", "conda", "deno", "dotnet", "elixir", "flutter", "gcc", "ghc", "go",
	"gofmt", "gradle", "java", "javac", "julia", "kotlinc", "mvn", "node", "npm", "php", "pip", "pipx", "pnpm", "poetry",
	"python", "python3", "ruby", "rustc", "rustup", "sbt", "stack", "swift", "tsc", "uv", "yarn", "zig",
}

// toolchains finds folders of PATH below the home folder that a job would not see, and prints
// the line that shows them to it (D12).
func toolchains(path, home string, allowed []string) []Finding {
	if path == "" || home == "" {
		return nil
	}
	var all []Finding
	folders := filepath.SplitList(path)
	for i, dir := range folders[:min(maxPathFolders, len(folders))] {
		if !below(dir, home) || slices.Contains(folders[:i], dir) {
			continue
		}
		if found := toolsIn(dir); len(found) > 0 {
			all = append(all, toolchainOf(dir, home, found, allowed))
		}
	}
	if len(all) == 0 {
		return []Finding{ok("toolchains", "none of PATH is below "+home)}
	}
	return all
}

// toolchainOf judges one folder of PATH.
func toolchainOf(dir, home string, found, allowed []string) Finding {
	folder := Toolchain(dir, home)
	check, names := "toolchain "+folder, strings.Join(found, ", ")
	if slices.ContainsFunc(allowed, func(a string) bool { return below(folder, a) || filepath.Clean(a) == folder }) {
		return ok(check, names)
	}
	return weak(check, names+": a confined job does not see what is below the home folder",
		fmt.Sprintf("forgeyard toolchain allow %s; in an agent's settings sandbox.toolchains: [%q]", folder, folder))
}

// toolsIn lists the tools in a folder, the first few by name.
func toolsIn(dir string) []string {
	var found []string
	for _, tool := range tools {
		info, err := os.Stat(filepath.Join(dir, tool))
		if err != nil || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		if len(found) == maxNamed {
			return append(found, "…")
		}
		found = append(found, tool)
	}
	return found
}
