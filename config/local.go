package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v4"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Local is the settings of forgeyard for jobs on this machine. What each means stands in default/local.yaml.
type Local struct {
	Toolchains  []string    `key:"toolchains"`
	ReadOnly    []string    `key:"read_only"`
	Environment Environment `key:"environment"`
}

// Environment is what jobs get of the environment of whoever runs the agent (D12).
type Environment struct {
	Pass []string `key:"pass"`
}

// maxPassed bounds the variables that are passed on.
const maxPassed = 64

// LoadLocal reads and validates the settings for jobs on this machine, like LoadDaemon. A file that is not there is none. In
// what it returns a leading ~/ is the home folder.
func LoadLocal(in Input, home string) (Local, error) {
	if _, err := os.Stat(in.File); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) { // where HOME is /dev/null, say
		in.File = ""
	}
	return load[Local](defaultLocal, LocalPrefix, in, func(l *Local) forge.Problems {
		for _, list := range [][]string{l.Toolchains, l.ReadOnly} {
			for i, path := range list {
				list[i] = AtHome(path, home)
			}
		}
		var c check
		c.shown("toolchains", l.Toolchains)
		c.shown("read_only", l.ReadOnly)
		c.environment(l.Environment)
		return c.found
	})
}

// AtHome puts the home folder in the place of a leading ~/.
func AtHome(path, home string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
		return filepath.Join(home, rest)
	}
	return path
}

func (c *check) environment(e Environment) {
	const key = "environment.pass"
	if len(e.Pass) > maxPassed {
		c.wrong(key, "has %d items, more than %d", len(e.Pass), maxPassed)
	}
	for i, name := range e.Pass {
		if err := (forge.EnvVar{Name: name}).Validate(); err != nil {
			c.wrong(fmt.Sprintf("%s[%d]", key, i), "%v", err)
		}
	}
}

// WithToolchain adds a folder to the toolchains of a settings file, or takes it away, and leaves everything else as it is
// written, comments too. done is false where there is nothing to do. The text is to be one that LoadLocal has read.
func WithToolchain(text []byte, folder string, add bool) (_ []byte, done bool, err error) {
	var doc yaml.Node
	loader, err := yaml.NewLoader(bytes.NewReader(text))
	if err == nil {
		err = loader.Load(&doc)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, fmt.Errorf("read the settings: %w", err)
	}
	if empty(&doc) {
		if !add {
			return text, false, nil
		}
		return append(text, fmt.Appendf(nil, "toolchains:\n  - %q\n", folder)...), true, nil
	}
	list := toolchainList(doc.Content[0])
	at := slices.IndexFunc(list.Content, func(n *yaml.Node) bool { return n.Value == folder })
	switch {
	case add == (at >= 0):
		return text, false, nil
	case add:
		list.Style &^= yaml.FlowStyle
		list.Content = append(list.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: folder})
	default:
		list.Content = slices.Delete(list.Content, at, at+1)
	}
	if text, err = yaml.Dump(&doc); err != nil {
		return nil, false, fmt.Errorf("write the settings: %w", err)
	}
	return text, true, nil
}

// toolchainList is the list in a mapping of settings, which is added where there is none.
func toolchainList(settings *yaml.Node) *yaml.Node {
	const key = "toolchains"
	for i := 0; i+1 < len(settings.Content); i += 2 {
		if settings.Content[i].Value == key {
			list := settings.Content[i+1]
			if list.Kind != yaml.SequenceNode {
				*list = yaml.Node{Kind: yaml.SequenceNode}
			}
			return list
		}
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	settings.Content = append(settings.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, list)
	return list
}
