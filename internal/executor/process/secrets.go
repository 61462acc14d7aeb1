package process

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// secretsPrefix begins the names of the folders that hold secrets.
const secretsPrefix = "forgeyard-"

// secretsDir is the folder for an order's secrets that are files, or empty if none is. It is made when they come.
func (e *Executor) secretsDir(order *executor.Order) string {
	if !slices.ContainsFunc(order.Spec.Secrets, func(use forge.SecretUse) bool { return use.File != "" }) {
		return ""
	}
	return filepath.Join(memoryDir, secretsPrefix+e.markOf(order.Context.Attempt))
}

// place makes the secrets ready for use: files are written, and variables returned.
func place(dir string, secrets []secret) ([]forge.EnvVar, error) {
	var env []forge.EnvVar
	for _, s := range secrets {
		if s.File != "" {
			if err := placeFile(dir, s); err != nil {
				return nil, fmt.Errorf("secret file %q: %w", s.File, err)
			}
			continue
		}
		if strings.ContainsRune(string(s.Value), 0) {
			return nil, fmt.Errorf("secret variable %q: its value has a zero byte, which no variable can hold; use a file", s.Env)
		}
		env = append(env, forge.EnvVar{Name: s.Env, Value: string(s.Value)})
	}
	return env, nil
}

func placeFile(dir string, s secret) error {
	if dir == "" || s.File != filepath.Base(s.File) || s.File == ".." {
		return errors.New("the job announced no such file")
	}
	if err := inMemory(filepath.Dir(dir)); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return err
	}
	return os.WriteFile(filepath.Join(dir, s.File), s.Value, 0o400)
}

// toSend turns what Start was given into what travels.
func toSend(secrets []executor.Secret) *start {
	var s start
	for _, given := range secrets {
		s.Secrets = append(s.Secrets, secret{Env: given.Use.Env, File: given.Use.File, Value: given.Value.Reveal()})
	}
	return &s
}
