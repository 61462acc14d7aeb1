package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unicode/utf8"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// goBin is where the distribution of Go is installed by default (D11).
const goBin = "/usr/local/go/bin"

// newPlan turns an order into a plan, and makes the folders that every step finds.
func (e *Executor) newPlan(order *executor.Order) (*plan, error) {
	if err := check(order); err != nil {
		return nil, &executor.SetupError{Class: forge.SandboxSetup, Err: err}
	}
	if err := makeFolders(order.Folder, len(order.Spec.Steps)); err != nil {
		return nil, folderError(err)
	}
	p := &plan{
		Folder: order.Folder, SecretsDir: e.secretsDir(order),
		Env: order.Spec.Env, Agent: order.Env,
		Run: order.Spec.Timeouts.Run, Grace: order.Spec.Timeouts.Grace,
		Policy: order.Policy, Deadline: order.Deadline,
	}
	p.Weak = append(hostEnv(),
		forge.EnvVar{Name: "PATH", Value: e.path()},
		forge.EnvVar{Name: "HOME", Value: filepath.Join(order.Folder, executor.HomeDir)},
		forge.EnvVar{Name: tempVar, Value: filepath.Join(order.Folder, executor.TempDir)},
	)
	p.Own = []forge.EnvVar{
		{Name: executor.EnvWork, Value: order.Folder},
		{Name: envMark, Value: e.markOf(order.Context.Attempt)},
	}
	if p.SecretsDir != "" {
		p.Own = append(p.Own, forge.EnvVar{Name: executor.EnvSecrets, Value: p.SecretsDir})
	}
	for i := range order.Spec.Steps {
		p.Steps = append(p.Steps, newStep(order.Folder, &order.Spec.Steps[i]))
	}
	return p, nil
}

func check(order *executor.Order) error {
	switch {
	case order.Output == nil:
		return errors.New("there is nobody to take the output")
	case order.Spec.Sandbox.Kind != forge.SandboxProcess:
		return fmt.Errorf("the job wants a sandbox of kind %v; plain processes would not confine it", order.Spec.Sandbox.Kind)
	case len(order.Spec.Sandbox.Levels) > 0:
		return fmt.Errorf("the job wants the walls %v; plain processes have none", order.Spec.Sandbox.Levels)
	case !filepath.IsAbs(order.Folder) || !utf8.ValidString(order.Folder):
		return fmt.Errorf("the attempt's folder %q is no absolute path in UTF-8", order.Folder)
	}
	return nil
}

func makeFolders(folder string, steps int) error {
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

// folderError says whose matter it is that a folder could not be made.
func folderError(err error) *executor.SetupError {
	class := forge.SandboxSetup
	if errors.Is(err, syscall.ENOSPC) {
		class = forge.DiskInsufficient
	}
	return &executor.SetupError{Class: class, Err: err}
}

func newStep(folder string, s *forge.Step) step {
	argv := s.Argv
	if len(argv) == 0 {
		argv = append(append(make([]string, 0, len(s.Shell)+1), s.Shell...), s.Script)
	}
	dir := filepath.Join(folder, filepath.FromSlash(s.Dir))
	return step{Argv: argv, Dir: dir, Env: s.Env, Timeout: s.Timeout, When: s.When, Allow: s.AllowFailure}
}

// path is the PATH of a step that sets none.
func (e *Executor) path() string {
	folders := append([]string{}, e.cfg.Toolchains...)
	if info, err := os.Stat(goBin); err == nil && info.IsDir() {
		folders = append(folders, goBin)
	}
	return strings.Join(append(folders, hostPath()...), string(filepath.ListSeparator))
}

// environ puts the environment of a step together: literals, the agent's, secrets, our own paths (07§63). Of several
// values of one name the last counts.
func (p *plan) environ(index uint16, secrets []forge.EnvVar) []string {
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

// outputBytes measures what a step wrote as its outputs. It stops counting beyond most.
func outputBytes(folder string, index uint16, most forge.Bytes) (forge.Bytes, error) {
	var total forge.Bytes
	if info, err := os.Lstat(executor.OutputFile(folder, index)); err == nil {
		total += forge.Bytes(info.Size())
	}
	errEnough := errors.New("enough")
	err := filepath.WalkDir(executor.OutputDir(folder, index), func(_ string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // the step removed it
		case err != nil:
			return err
		case total > most:
			return errEnough
		case !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err == nil {
			total += forge.Bytes(info.Size()) + 1 // so that empty files are bounded too
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return total, err
}
