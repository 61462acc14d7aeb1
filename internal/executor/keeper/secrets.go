package keeper

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/forgeyard/forgeyard/internal/executor"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// place makes the secrets ready for use: files are written, and variables returned. The folder is a new one: what lies there
// already is somebody else's, who would get to read them.
func place(dir string, secrets []Secret) ([]forge.EnvVar, error) {
	var env []forge.EnvVar
	made := false
	for _, s := range secrets {
		if s.File != "" {
			if !made {
				if err := placeFolder(dir); err != nil {
					return nil, fmt.Errorf("folder of secret files: %w", err)
				}
				made = true
			}
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

func placeFolder(dir string) error {
	if dir == "" {
		return errNotAnnounced
	}
	if err := inMemory(filepath.Dir(dir)); err != nil {
		return err
	}
	return os.Mkdir(dir, 0o700)
}

var errNotAnnounced = errors.New("the job announced no such file")

func placeFile(dir string, s Secret) error {
	if s.File != filepath.Base(s.File) || s.File == ".." {
		return errNotAnnounced
	}
	file, err := os.OpenFile(filepath.Join(dir, s.File), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o400)
	if err != nil {
		return err
	}
	_, err = file.Write(s.Value)
	return errors.Join(err, file.Close())
}

// ToSend turns what Start was given into what travels.
func ToSend(secrets []executor.Secret) *Start {
	var s Start
	for _, given := range secrets {
		s.Secrets = append(s.Secrets, Secret{Env: given.Use.Env, File: given.Use.File, Value: given.Value.Reveal()})
	}
	return &s
}
