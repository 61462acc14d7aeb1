package agent

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
)

// helperName is the program for sandboxes alone, which starts faster than an agent.
const helperName = "forgeyard-sandbox"

// helper finds the program for sandboxes in the folder of this one. It is "" where there is none; the error says why one
// that is there must not be used. This program then does the same, more slowly.
func helper() (string, error) {
	own, err := os.Executable()
	if err != nil {
		return "", nil // and so nothing is beside it
	}
	return helperBeside(own)
}

func helperBeside(own string) (string, error) {
	path := filepath.Join(filepath.Dir(own), helperName)
	info, err := os.Lstat(path)
	if err != nil {
		return "", nil
	}
	const othersWrite = 0o022
	if !info.Mode().IsRegular() || info.Mode().Perm()&othersWrite != 0 {
		return "", fmt.Errorf("%s must be a file that only its owner can write to: chmod go-w %s", path, path)
	}
	theirs, err := buildinfo.ReadFile(path)
	if err != nil {
		return "", err
	}
	ours, ok := debug.ReadBuildInfo()
	if !ok || build(ours) != build(theirs) {
		return "", fmt.Errorf("%s is of another build than %s: install both from the same one", path, own)
	}
	return path, nil
}

// build names what a program was built from.
func build(info *debug.BuildInfo) string {
	text := info.GoVersion + " " + info.Main.Version
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision", "vcs.modified", "GOARCH", "-tags":
			text += " " + s.Key + "=" + s.Value
		}
	}
	return text
}
