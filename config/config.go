// Package config reads the settings of daemon and agent, and of jobs that the command runs itself: defaults that are built in, a YAML file over them, the
// environment over that, and the command line over all. What comes out is a plain struct that was validated once.
//
// It is strict. Unknown keys, keys that are there twice, values of the wrong type and values that do not fit together are
// errors, all of them at once, each with the file, line and column (or the variable, or the flag) that it came from.
// Anchors, aliases and tags are refused, so a file means what stands in it and costs what it is long. Durations and sizes
// are text with a unit. Keys and tokens are named by their files and never written here; a value that looks like the
// secret itself is refused and not repeated in the error.
//
// The package starts no goroutine, reads no file but the one it is given, and keeps no state.
package config

import (
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// MaxFileBytes bounds a configuration file.
const MaxFileBytes = 1 << 20

//go:embed default/daemon.yaml
var defaultDaemon []byte

//go:embed default/agent.yaml
var defaultAgent []byte

//go:embed default/local.yaml
var defaultLocal []byte

// Prefixes of the environment variables of daemon, agent and the command on this machine: the prefix, then the key in capitals with _ for each dot.
const (
	DaemonPrefix = "FORGEYARD_DAEMON_"
	AgentPrefix  = "FORGEYARD_AGENT_"
	LocalPrefix  = "FORGEYARD_LOCAL_"
)

// Input is where settings come from, besides the defaults.
type Input struct {
	File    string   // path of a YAML file; empty: none
	Environ []string // as os.Environ returns it
	Flags   []Override
}

// An Override sets one key, from the command line.
type Override struct {
	Source string // what the user wrote, for errors: "--listen"
	Key    string // "http.listen"
	Value  string
}

// ParseOverride reads "key=value" as it stands behind a flag.
func ParseOverride(source, text string) (Override, error) {
	key, value, ok := strings.Cut(text, "=")
	if !ok || key == "" {
		return Override{}, fmt.Errorf("%s %q: write key=value, as in log.level=debug", source, clip(text))
	}
	return Override{Source: source, Key: key, Value: value}, nil
}

// LoadDaemon reads and validates the daemon's settings. The error is of the type Problems unless the file could not be
// read.
func LoadDaemon(in Input) (Daemon, error) {
	return load[Daemon](defaultDaemon, DaemonPrefix, in, func(d *Daemon) forge.Problems { return d.problems() })
}

// LoadAgent reads and validates the agent's settings, like LoadDaemon.
func LoadAgent(in Input) (Agent, error) {
	return load[Agent](defaultAgent, AgentPrefix, in, func(a *Agent) forge.Problems { return a.problems() })
}

func load[T any](defaults []byte, prefix string, in Input, validate func(*T) forge.Problems) (T, error) {
	var settings, none T
	d := newDecoder(reflect.ValueOf(&settings).Elem())
	d.file("built-in defaults", defaults)
	if len(d.found) > 0 {
		panic("config: " + d.found.Error()) // a mistake in our own file, which every test of ours would meet
	}
	if in.File != "" {
		data, err := readFile(in.File)
		if err != nil {
			return none, err
		}
		d.file(in.File, data)
	}
	d.environ(prefix, in.Environ)
	for _, o := range in.Flags {
		d.set(o.Source, o.Key, o.Value)
	}
	if len(d.found) == 0 {
		for _, p := range validate(&settings) {
			d.wrong(d.source(p.Path), p.Path, "%s", p.What)
		}
	}
	if len(d.found) > 0 {
		return none, d.found
	}
	return settings, nil
}

// readFile reads a configuration file within its bound.
func readFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	data, err := io.ReadAll(io.LimitReader(file, MaxFileBytes+1))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	if len(data) > MaxFileBytes {
		return nil, fmt.Errorf("read configuration: %s has more than %d bytes", name, MaxFileBytes)
	}
	return data, nil
}
