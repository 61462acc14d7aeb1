package doctor

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Toolchain returns the folder that a job has to see for the programs in a folder of PATH below home to work: usually the one
// that bin is in. Where that folder holds only names that look the program up elsewhere, it is the one where the programs are.
func Toolchain(dir, home string) string {
	relative, err := filepath.Rel(home, dir)
	if err != nil || !filepath.IsLocal(relative) {
		return dir
	}
	first := filepath.Join(home, strings.Split(relative, string(filepath.Separator))[0])
	switch {
	case filepath.Base(dir) == "shims": // of pyenv, rbenv, asdf and the like
		return first
	case relative == filepath.Join(".cargo", "bin"):
		if chain := rustToolchain(home); chain != "" {
			return chain
		}
		return dir // beside it are the tokens of registries
	case filepath.Base(dir) == "bin" && filepath.Dir(dir) != home && relative != filepath.Join(".local", "bin"):
		return filepath.Dir(dir)
	}
	return dir
}

var defaultToolchain = regexp.MustCompile(`(?m)^default_toolchain\s*=\s*"([A-Za-z0-9._-]+)"`)

// rustToolchain is the toolchain that rustup uses where nothing else is said; empty if there is none.
func rustToolchain(home string) string {
	text, err := os.ReadFile(filepath.Join(home, ".rustup", "settings.toml"))
	if err != nil {
		return ""
	}
	named := defaultToolchain.FindSubmatch(text)
	if named == nil {
		return ""
	}
	folder := filepath.Join(home, ".rustup", "toolchains", string(named[1]))
	if info, err := os.Stat(filepath.Join(folder, "bin")); err != nil || !info.IsDir() {
		return ""
	}
	return folder
}

// below says whether a path is below a folder.
func below(path, folder string) bool {
	relative, err := filepath.Rel(folder, path)
	return err == nil && relative != "." && filepath.IsLocal(relative)
}
