package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/forgeyard/forgeyard/internal/sim"
)

// runMutants builds the simulation once for each mutant, with its edits laid over the source, and runs schedules until
// one of them shows a violation.
func runMutants(names []string, schedules, seed uint64) int {
	mutants, err := sim.Mutants()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		return 2
	}
	for _, name := range names {
		if !slices.ContainsFunc(mutants, func(m sim.Mutant) bool { return m.Name == name }) {
			fmt.Fprintf(os.Stderr, "sim: there is no mutant %q; internal/sim/mutants.txt has them all\n", name)
			return 64
		}
	}
	root, err := moduleRoot()
	if err != nil {
		fmt.Fprintln(os.Stderr, "sim:", err)
		return 2
	}
	survived, run := 0, 0
	for _, m := range mutants {
		if len(names) > 0 && !slices.Contains(names, m.Name) {
			continue
		}
		run++
		start := time.Now()
		verdict, caught, err := tryMutant(root, m, schedules, seed)
		if err != nil {
			fmt.Printf("%-32s STALE  %v\n", m.Name, err)
			survived++
			continue
		}
		if !caught {
			survived++
		}
		fmt.Printf("%-32s %-60s %6.1fs\n", m.Name, verdict, time.Since(start).Seconds())
	}
	fmt.Printf("\n%d mutants, %d caught, %d not\n", run, run-survived, survived)
	if survived > 0 {
		return 1
	}
	return 0
}

// tryMutant builds and runs one mutant in a temporary folder.
func tryMutant(root string, m sim.Mutant, schedules, seed uint64) (verdict string, caught bool, err error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return "", false, err
	}
	defer os.RemoveAll(dir)
	overlay, err := writeOverlay(root, dir, m)
	if err != nil {
		return "", false, err
	}
	binary := filepath.Join(dir, "sim")
	build := exec.Command("go", "build", "-overlay", overlay, "-o", binary, "./tools/sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", false, fmt.Errorf("does not build: %w\n%s", err, out)
	}
	out, err := exec.Command(binary, "-scout", "-schedules", fmt.Sprint(schedules), "-seed", fmt.Sprint(seed)).CombinedOutput()
	var exit *exec.ExitError
	switch text := strings.TrimSpace(string(out)); {
	case err == nil:
		return "SURVIVED " + text, false, nil
	case errors.As(err, &exit) && strings.HasPrefix(text, "caught "):
		fields := strings.Fields(text)
		return fmt.Sprintf("caught by %s within %s schedules", fields[2], fields[1]), true, nil
	case errors.As(err, &exit) && strings.Contains(text, "panic:"):
		return "caught by a panic", true, nil
	default:
		return "", false, fmt.Errorf("does not run: %w: %s", err, text)
	}
}

// writeOverlay writes the edited files and the overlay that puts them in the place of the real ones.
func writeOverlay(root, dir string, m sim.Mutant) (string, error) {
	edited := map[string]string{}
	for _, e := range m.Edits {
		source, ok := edited[e.File]
		if !ok {
			data, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return "", err
			}
			source = string(data)
		}
		source, err := e.Apply(source)
		if err != nil {
			return "", err
		}
		edited[e.File] = source
	}
	replace := map[string]string{}
	for file, source := range edited {
		path := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(path, []byte(source), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, file)] = path
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, data, 0o600)
}

func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	path := strings.TrimSpace(string(out))
	if err != nil || path == "" || path == os.DevNull {
		return "", errors.New("mutants are built from source: run this inside the module")
	}
	return filepath.Dir(path), nil
}
