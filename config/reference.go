package config

import (
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Reference writes the page on all settings, in Markdown, from the annotated defaults.
func Reference() string {
	var b strings.Builder
	b.WriteString("# Configuration\n\n" +
		"Made from `config/default/*.yaml` by `go test ./config -update`; do not edit it here.\n\n" +
		"Settings come from built-in defaults, then a YAML file (`--config`), then the environment, then the\n" +
		"command line (`--set key=value`), each stronger than the one before. Lists from the environment or the\n" +
		"command line are separated by commas; an empty variable changes nothing. Durations are written as `90s` or `1h30m`, sizes as `512MiB`. A\n" +
		"setting marked *reload* takes effect when the program gets SIGHUP; for the others it says that it must\n" +
		"be restarted.\n\n" +
		"Daemon and agent also heed `QUIC_GO_DISABLE_GSO=true` in their environment: it sends each packet by itself, for network\n" +
		"drivers that fail when the system is given several to cut apart. Without it, a failure with EIO does the same for that\n" +
		"connection; set it where connections end with another error of sending, such as EINVAL.\n")
	page(&b, "forgeyard-daemon", DaemonPrefix, "log.level", defaultDaemon, reflect.ValueOf(&Daemon{}).Elem())
	page(&b, "forgeyard-agent", AgentPrefix, "log.level", defaultAgent, reflect.ValueOf(&Agent{}).Elem())
	page(&b, "forgeyard", LocalPrefix, "environment.pass", defaultLocal, reflect.ValueOf(&Local{}).Elem())
	b.WriteString("\nThese stand in `forgeyard/local.yaml` below `XDG_CONFIG_HOME` (`~/.config`). They are for the jobs that `forgeyard run` and\n" +
		"`forgeyard up` run on this machine; those of a daemon go by the settings of its agents.\n")
	return b.String()
}

func page(b *strings.Builder, program, prefix, example string, defaults []byte, settings reflect.Value) {
	var doc yaml.Node
	if err := yaml.Load(defaults, &doc); err != nil {
		panic("config: " + err.Error()) // our own file
	}
	said := map[string]note{}
	notes(doc.Content[0], "", said)
	fmt.Fprintf(b, "\n## %s\n\nEnvironment variables begin with `%s`: `%s` is `%s`.\n\n| Key | Default | Meaning |\n|---|---|---|\n",
		program, prefix, variableName(prefix, example), example)
	for _, l := range leaves(settings, "") {
		n := said[l.key]
		if l.safe {
			n.text += " *reload*"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", l.key, n.value, strings.ReplaceAll(n.text, "|", `\|`))
	}
}

// A note is what the annotated defaults say of a key.
type note struct{ value, text string }

func notes(node *yaml.Node, prefix string, into map[string]note) {
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if value.Kind == yaml.MappingNode {
			notes(value, prefix+key.Value+".", into)
			continue
		}
		text := value.Value
		switch {
		case value.Kind == yaml.SequenceNode:
			text = "none"
		case text == "":
			text = "empty"
		default:
			text = "`" + text + "`"
		}
		into[prefix+key.Value] = note{value: text, text: comment(key.HeadComment)}
	}
}

// comment joins the lines of a comment.
func comment(text string) string {
	var words []string
	for line := range strings.Lines(text) {
		words = append(words, strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "#"))...)
	}
	return strings.Join(words, " ")
}
