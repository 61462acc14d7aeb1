package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/forgeyard/forgeyard/config"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// settingsFile is where a user's settings for jobs on this machine stand, below our folder for configuration.
const settingsFile = "local.yaml"

// settings reads what the user has allowed the jobs of this machine. Where no folder is named for configuration, it is nothing.
func (a *app) settings() (config.Local, error) {
	in := config.Input{}
	dir, err := a.configDir()
	if err == nil {
		in.File = filepath.Join(dir, settingsFile)
	} else if !errors.Is(err, errHomeless) {
		return config.Local{}, err
	}
	for _, key := range []string{"TOOLCHAINS", "READ_ONLY", "ENVIRONMENT_PASS"} {
		if value := a.env.Getenv(config.LocalPrefix + key); value != "" {
			in.Environ = append(in.Environ, config.LocalPrefix+key+"="+value)
		}
	}
	local, err := config.LoadLocal(in, a.env.Getenv("HOME"))
	if err != nil {
		return config.Local{}, console.Usage("the settings for jobs on this machine are wrong:\n%v", err)
	}
	return local, nil
}

// passedByDefault are the variables that jobs of this machine always get, where they are set: without them nothing is fetched
// in many offices (D12).
var passedByDefault = []string{
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE",
	"GOPROXY", "GOFLAGS", "GOSUMDB", "npm_config_registry", "PIP_INDEX_URL",
}

// allow puts what the user has allowed into the options of the agent in this process, and says which variables jobs get.
func (a *app) allow(o *LocalOptions) error {
	s, err := a.settings()
	if err != nil {
		return err
	}
	o.Toolchains = s.Toolchains
	o.ReadOnly = append(o.ReadOnly, s.ReadOnly...)
	var names []string
	for _, name := range slices.Concat(passedByDefault, s.Environment.Pass) {
		v := forge.EnvVar{Name: name, Value: a.env.Getenv(name)}
		if v.Value == "" || slices.Contains(names, name) {
			continue
		}
		if err := v.Validate(); err != nil {
			return console.Usage("the variable %s cannot be passed on to jobs: %v", name, err)
		}
		names = append(names, name)
		o.Env = append(o.Env, v)
	}
	if len(names) > 0 {
		a.note("jobs get %s of your environment", strings.Join(names, ", "))
	}
	return missing(s.Toolchains)
}

// missing refuses toolchains that are gone, before every job fails of them.
func missing(toolchains []string) error {
	for _, folder := range toolchains {
		source, _, _ := strings.Cut(folder, ":")
		if _, err := os.Stat(source); err != nil {
			return console.Usage("the toolchain %s, which your settings allow jobs to see, is not there: %v\nForget it: forgeyard toolchain rm %s", console.Plain(source), cause(err), console.Plain(source))
		}
	}
	return nil
}

// home is the user's home folder, or "".
func (a *app) home() string {
	if home := a.env.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Clean(home)
	}
	return ""
}

// writeSettings replaces the settings file.
func (a *app) writeSettings(edit func(text []byte) ([]byte, bool, error)) (file string, done bool, err error) {
	dir, err := a.configDir()
	if err != nil {
		return "", false, err
	}
	file = filepath.Join(dir, settingsFile)
	text, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", false, noConfig("read the settings", err)
	}
	text, done, err = edit(text)
	if err != nil || !done {
		return file, false, err
	}
	if err := keep("the settings", file, text); err != nil {
		return "", false, err
	}
	return file, true, nil
}
