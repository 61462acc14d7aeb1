package keeper

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Room is what an executor gives to the steps of an attempt.
type Room struct {
	Folder  string         // the attempt's, as the steps see it
	Secrets string         // likewise the folder of secrets that are files; made when they come; empty where none is a file
	Temp    string         // likewise, where TMPDIR is not executor.TempDir of Folder
	Path    []string       // folders of PATH
	Own     []forge.EnvVar // stronger than everything
}

// NewPlan turns an order into a plan.
func NewPlan(order *executor.Order, room Room) *Plan {
	p := &Plan{
		Folder: room.Folder, SecretsDir: room.Secrets,
		Env: order.Spec.Env, Agent: order.Env,
		Run: order.Spec.Timeouts.Run, Grace: order.Spec.Timeouts.Grace,
		Policy: order.Policy, Deadline: order.Deadline,
	}
	temp := room.Temp
	if temp == "" {
		temp = filepath.Join(room.Folder, executor.TempDir)
	}
	p.Weak = append(hostEnv(),
		forge.EnvVar{Name: "PATH", Value: strings.Join(room.Path, string(filepath.ListSeparator))},
		forge.EnvVar{Name: "HOME", Value: filepath.Join(room.Folder, executor.HomeDir)},
		forge.EnvVar{Name: tempVar, Value: temp},
	)
	p.Own = append([]forge.EnvVar{{Name: executor.EnvWork, Value: room.Folder}}, room.Own...)
	if p.SecretsDir != "" {
		p.Own = append(p.Own, forge.EnvVar{Name: executor.EnvSecrets, Value: p.SecretsDir})
	}
	for i := range order.Spec.Steps {
		p.Steps = append(p.Steps, newStep(room.Folder, &order.Spec.Steps[i]))
	}
	return p
}

// HasSecretFiles reports whether an order has secrets that are files.
func HasSecretFiles(order *executor.Order) bool {
	return slices.ContainsFunc(order.Spec.Secrets, func(use forge.SecretUse) bool { return use.File != "" })
}

// Check refuses an order that no executor could carry out.
func Check(order *executor.Order) error {
	switch {
	case order.Output == nil:
		return errors.New("there is nobody to take the output")
	case !filepath.IsAbs(order.Folder) || !utf8.ValidString(order.Folder):
		return fmt.Errorf("the attempt's folder %q is no absolute path in UTF-8", order.Folder)
	}
	return checkInputs(order.Inputs)
}

// MakeFolders makes what every step finds in the attempt's folder.
func MakeFolders(folder string, steps int) error {
	dirs := []string{executor.HomeDir, executor.TempDir, forge.SourceDir}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(folder, dir), 0o755); err != nil {
			return err
		}
	}
	for i := range steps {
		if err := os.MkdirAll(executor.OutputDir(folder, uint16(i)), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(executor.OutputFile(folder, uint16(i)), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func newStep(folder string, s *forge.Step) Step {
	argv := s.Argv
	if len(argv) == 0 {
		argv = append(append(make([]string, 0, len(s.Shell)+1), s.Shell...), s.Script)
	}
	dir := filepath.Join(folder, filepath.FromSlash(s.Dir))
	return Step{Argv: argv, Dir: dir, Env: s.Env, Timeout: s.Timeout, When: s.When, Allow: s.AllowFailure}
}

// Setup says whose matter it is that a workload could not be made.
func Setup(err error) *executor.SetupError {
	class := forge.SandboxSetup
	if errors.Is(err, syscall.ENOSPC) {
		class = forge.DiskInsufficient
	}
	return &executor.SetupError{Class: class, Err: err}
}

// environ puts the environment of a step together: literals, the agent's, secrets, our own paths (07§63). Of several
// values of one name the last counts.
func (p *Plan) environ(index uint16, secrets []forge.EnvVar) []string {
	paths := []forge.EnvVar{
		{Name: executor.EnvOutput, Value: executor.OutputFile(p.Folder, index)},
		{Name: executor.EnvOutputDir, Value: executor.OutputDir(p.Folder, index)},
	}
	var env []string
	at := map[string]int{}
	for _, list := range [][]forge.EnvVar{p.Weak, p.Env, p.Steps[index].Env, p.Agent, secrets, p.Own, paths} {
		for _, v := range list {
			text := v.Name + "=" + v.Value
			if i, ok := at[v.Name]; ok {
				env[i] = text
				continue
			}
			at[v.Name] = len(env)
			env = append(env, text)
		}
	}
	return env
}

// outputBytes measures what a step wrote as its outputs. It stops counting beyond most. Processes of the attempt may be at work
// in there: every entry counts, so that nothing they do makes this go on for ever.
func outputBytes(folder string, index uint16, most forge.Bytes) (forge.Bytes, error) {
	m := measure{most: most}
	if info, err := os.Lstat(executor.OutputFile(folder, index)); err == nil {
		m.total += forge.Bytes(info.Size())
	}
	err := m.folder(executor.OutputDir(folder, index), 0)
	return m.total, err
}

// Bounds of a walk through outputs, for its memory and its open files.
const (
	maxOutputDepth = 64
	entriesAtOnce  = 256
)

// measure is a walk through outputs, which ends once they are too large.
type measure struct{ total, most forge.Bytes }

// folder adds what is in a folder, which may be gone or something else by now.
func (m *measure) folder(path string, depth int) error {
	if depth > maxOutputDepth {
		return fmt.Errorf("its folders are more than %d deep", maxOutputDepth)
	}
	dir, err := openFolder(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // nothing was written
	for m.total <= m.most {
		entries, err := dir.ReadDir(entriesAtOnce)
		if err := m.entries(path, entries, depth); err != nil {
			return err
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

func (m *measure) entries(path string, entries []fs.DirEntry, depth int) error {
	for _, e := range entries {
		m.total++ // so that what is empty is bounded too
		switch {
		case m.total > m.most:
			return nil
		case e.IsDir():
			if err := m.folder(filepath.Join(path, e.Name()), depth+1); err != nil {
				return err
			}
		case e.Type().IsRegular():
			if info, err := e.Info(); err == nil { // else it is gone
				m.total += forge.Bytes(info.Size())
			}
		}
	}
	return nil
}
