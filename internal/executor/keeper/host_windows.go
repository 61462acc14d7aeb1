package keeper

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// tempVar names the folder for temporary files.
const tempVar = "TEMP"

// hostNames are variables without which programs of this system do not start.
var hostNames = []string{"SystemRoot", "SystemDrive", "windir", "ComSpec", "PATHEXT", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE"}

func hostEnv() []forge.EnvVar {
	var env []forge.EnvVar
	for _, name := range hostNames {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, forge.EnvVar{Name: name, Value: value})
		}
	}
	return env
}

// LookPath finds a program with the PATH, the folder and the extensions of the step.
func LookPath(name, dir string, env []string) (string, error) {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("its folder %s is not there", dir)
	}
	folders := filepath.SplitList(value(env, "PATH"))
	if strings.ContainsAny(name, `/\:`) {
		folders = []string{dir}
	}
	for _, folder := range folders {
		for _, extension := range append([]string{""}, strings.Split(value(env, "PATHEXT"), ";")...) {
			path := name + extension
			if !filepath.IsAbs(path) {
				path = filepath.Join(folder, path)
			}
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.Ext(path) != "" {
				return path, nil
			}
		}
	}
	return "", fmt.Errorf("%s: %w in PATH", name, ErrNotFound)
}

// openFolder opens a folder.
func openFolder(path string) (*os.File, error) { return os.Open(path) }

func value(env []string, name string) string {
	for _, v := range env {
		if n, value, ok := strings.Cut(v, "="); ok && strings.EqualFold(n, name) {
			return value
		}
	}
	return ""
}
