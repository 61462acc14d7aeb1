package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/config"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// file writes a configuration file and returns its path.
func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "settings.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// told returns the problems of loading agent settings, without the folder in front of the file's name.
func told(t *testing.T, in config.Input) []string {
	t.Helper()
	_, err := config.LoadAgent(in)
	var problems config.Problems
	if err == nil {
		return nil
	}
	if !errors.As(err, &problems) {
		t.Fatalf("not a list of problems: %v", err)
	}
	var lines []string
	for _, p := range problems {
		if in.File != "" {
			p.Source = strings.ReplaceAll(p.Source, in.File, "a.yaml")
		}
		lines = append(lines, p.String())
	}
	return lines
}

func TestDefaultsAreThoseOfTheDomain(t *testing.T) {
	d := config.DefaultDaemon()
	if diff := cmp.Diff(forge.DefaultLeasePolicy(), d.Lease.Policy()); diff != "" {
		t.Error(diff)
	}
	if d.HTTP.Listen != "127.0.0.1:7480" || d.AgentTransport.Listen != "[::]:7443" {
		t.Errorf("listens on %q and %q", d.HTTP.Listen, d.AgentTransport.Listen)
	}
	a := config.DefaultAgent()
	if diff := cmp.Diff(forge.LocalPolicy{}, a.Policy.Local()); diff != "" {
		t.Errorf("the default policy allows something or bounds something: %s", diff)
	}
	if a.MaxParallelJobs != 1 || a.DataDir != "/var/lib/forgeyard-agent" {
		t.Errorf("%d jobs, folder %s", a.MaxParallelJobs, a.DataDir)
	}
}

func TestAFileIsReadOverTheDefaults(t *testing.T) {
	in := config.Input{File: file(t, `
# a comment
control_plane:
  endpoints: [ "quic://one.example.org:7443", "[::1]:7443" ]
labels: [ on, "1.20", 012 ]   # text, whatever YAML thinks of them
policy: { allow_unconfined: true, max_cpu: 1.5, max_memory: 8GiB, max_processes: 400, max_run: 1h30m }
max_parallel_jobs: 3
`)}
	got, err := config.LoadAgent(in)
	if err != nil {
		t.Fatal(err)
	}
	want := config.DefaultAgent()
	want.ControlPlane.Endpoints = []string{"quic://one.example.org:7443", "[::1]:7443"}
	want.Labels = []string{"on", "1.20", "012"}
	want.Policy = config.Policy{AllowUnconfined: true, MaxCPU: 1500, MaxMemory: 8 * forge.GiB, MaxProcesses: 400, MaxRun: 90 * time.Minute}
	want.MaxParallelJobs = 3
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryProblemIsToldAtOnceWithItsPlace(t *testing.T) {
	got := told(t, config.Input{File: file(t, `data_dir: relative
log:
  levle: debug
  keep: many
  keep: 3
max_parallel_jobs: -1
workspace_retention: 30
labels: one
control_plane: [a]
policy:
  max_memory: 8GB
  allow_unconfined: yes
reserve:
  memory:
`)})
	want := []string{
		`a.yaml:3:3: log.levle: there is no such setting; did you mean "level"?`,
		`a.yaml:4:9: log.keep: "many" is not a whole number from 0 to 2147483647`,
		`a.yaml:5:3: log.keep: is there twice, first on line 4`,
		`a.yaml:6:20: max_parallel_jobs: "-1" is not a whole number from 0 to 2147483647`,
		`a.yaml:7:22: workspace_retention: "30" is no duration; write it with a unit, as in "90s", "20m" or "1h30m"`,
		`a.yaml:8:9: labels: must be a list, as in [a, b], not one value`,
		`a.yaml:9:16: control_plane: must hold keys, not a list`,
		`a.yaml:11:15: policy.max_memory: "8GB" is no size; write it with a unit, as in "512MiB" or "8GiB"`,
		`a.yaml:12:21: policy.allow_unconfined: "yes" is neither true nor false`,
		`a.yaml:14:10: reserve.memory: has no value; leave the key out to keep the default, or write "" for empty`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestValuesThatDoNotFitAreToldWithTheirSource(t *testing.T) {
	got := told(t, config.Input{
		File:    file(t, "data_dir: relative\nlabels: [a, a]\nlog: { max_size: 1KiB }\n"),
		Environ: []string{"FORGEYARD_AGENT_CONTROL_PLANE_ENDPOINTS=quic://h:1,http://h:2"},
		Flags:   []config.Override{{Source: "--log-level", Key: "log.level", Value: "loud"}},
	})
	want := []string{
		`a.yaml:1:11: data_dir: "relative" is not an absolute path`,
		`FORGEYARD_AGENT_CONTROL_PLANE_ENDPOINTS: control_plane.endpoints[1]: "http://h:2" is not an endpoint, as in "quic://daemon.example.org:7443"`,
		`a.yaml:2:13: labels[1]: "a" is there twice`,
		`--log-level: log.level: "loud" is no level; use debug, info, warn or error`,
		`a.yaml:3:18: log.max_size: 1 KiB is not from 64 KiB to 1 GiB`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestTheEnvironmentIsAsStrictAsAFile(t *testing.T) {
	got := told(t, config.Input{Environ: []string{
		"PATH=/bin", "FORGEYARD_SERVER=elsewhere", "FORGEYARD_DAEMON_DATA_DIR=/another/program",
		"FORGEYARD_AGENT_LOG_LEVLE=debug", "FORGEYARD_AGENT_MAX_PARALLEL_JOBS=two", "FORGEYARD_AGENT_LOG=x", "FORGEYARD_AGENT_LABELS=",
	}})
	want := []string{
		`FORGEYARD_AGENT_LOG: there is no such setting`,
		`FORGEYARD_AGENT_LOG_LEVLE: there is no such setting; did you mean "FORGEYARD_AGENT_LOG_LEVEL"?`,
		`FORGEYARD_AGENT_MAX_PARALLEL_JOBS: max_parallel_jobs: "two" is not a whole number from 0 to 2147483647`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestStrongerSourcesWin(t *testing.T) {
	in := config.Input{
		File:    file(t, "log: { level: warn, format: json }\nlabels: [file]\ndata_dir: /from/file\n"),
		Environ: []string{"FORGEYARD_AGENT_LOG_LEVEL=error", "FORGEYARD_AGENT_LABELS=a, b"},
		Flags:   []config.Override{{Source: "--data", Key: "data_dir", Value: "/from/flag"}},
	}
	got, err := config.LoadAgent(in)
	if err != nil {
		t.Fatal(err)
	}
	want := config.DefaultAgent()
	want.Log.Level, want.Log.Format, want.Labels, want.DataDir = "error", "json", []string{"a", "b"}, "/from/flag"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnknownFlagKeyIsAProblem(t *testing.T) {
	got := told(t, config.Input{Flags: []config.Override{{Source: "--set", Key: "log.leve", Value: "debug"}}})
	if diff := cmp.Diff([]string{`--set: log.leve: there is no such setting; did you mean "log.level"?`}, got); diff != "" {
		t.Error(diff)
	}
}

func TestASettingWithoutItsSectionIsFound(t *testing.T) {
	got := told(t, config.Input{Flags: []config.Override{{Source: "--set", Key: "level", Value: "debug"}, {Source: "--set", Key: "", Value: "x"}}})
	want := []string{`--set: level: there is no such setting; did you mean log.level?`, `--set: there is no such setting`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOverridesAreKeyAndValue(t *testing.T) {
	if got, err := config.ParseOverride("--set", "a.b=c=d"); err != nil || got != (config.Override{Source: "--set", Key: "a.b", Value: "c=d"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for _, bad := range []string{"", "a", "=b"} {
		if _, err := config.ParseOverride("--set", bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

func TestSecretsAreRefusedAndNotRepeated(t *testing.T) {
	const secret = "MHcCAQEEIIrYSSNQFaA2Hwf1"
	for name, text := range map[string]string{
		"a key":         "control_plane:\n  token_file: |\n    -----BEGIN EC PRIVATE KEY-----\n    " + secret + "\n",
		"a token":       "control_plane: { token_file: fy_enroll_" + secret + " }\n",
		"a long string": "control_plane: { token_file: " + strings.Repeat(secret, 20) + " }\n",
	} {
		got := told(t, config.Input{File: file(t, text)})
		if len(got) != 1 || !strings.Contains(got[0], "looks like the secret itself") || strings.Contains(got[0], secret) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestWhatIsNotPlainYAMLIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"an anchor":       {"labels: &x [a]\n", "anchors and aliases are not used"},
		"an alias":        {"labels: &x [a]\nlog: { level: *x }\n", "anchors and aliases are not used"},
		"a tag":           {"data_dir: !!str /x\n", "tags are not used"},
		"two documents":   {"data_dir: /x\n---\ndata_dir: /y\n", "more than one document"},
		"no YAML":         {"data_dir: [\n", "not YAML"},
		"a tab":           {"log:\n\tlevel: info\n", "not YAML"},
		"a list":          {"- a\n", "must hold keys, not a list"},
		"a word":          {"hello\n", "must hold keys, not one value"},
		"a mapping key":   {"? {a: b}\n: c\n", "there is no such setting"},
		"very deep lists": {"labels: " + strings.Repeat("[", 100_000) + "\n", "not YAML"},
		"a bomb": {
			"x: &a [a,a,a,a,a,a,a,a,a]\ny: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nlabels: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
			"anchors and aliases are not used",
		},
	} {
		if got := told(t, config.Input{File: file(t, c.text)}); !strings.Contains(strings.Join(got, "\n"), c.want) {
			t.Errorf("%s: told %q, want %q", name, got, c.want)
		}
	}
}

func TestAnEmptyFileChangesNothing(t *testing.T) {
	for _, text := range []string{"", "# only a comment\n", "---\n"} {
		if got := told(t, config.Input{File: file(t, text)}); got != nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestBoundsOfSettings(t *testing.T) {
	big := file(t, "# "+strings.Repeat("x", config.MaxFileBytes)+"\n")
	if _, err := config.LoadAgent(config.Input{File: big}); err == nil || !strings.Contains(err.Error(), "more than 1048576 bytes") {
		t.Errorf("a file that is too large: %v", err)
	}
	many := "labels: [" + strings.Repeat("a,", config.MaxListItems+1) + "]\n"
	if got := told(t, config.Input{File: file(t, many)}); len(got) != 1 || !strings.Contains(got[0], "has 257 items, more than 256") {
		t.Errorf("a list that is too long: %q", got)
	}
	wrong := strings.Repeat("x: y\n", config.MaxProblems+10)
	if got := told(t, config.Input{File: file(t, wrong)}); len(got) != config.MaxProblems+1 {
		t.Errorf("%d problems told", len(got))
	}
	if _, err := config.LoadAgent(config.Input{File: filepath.Join(t.TempDir(), "none.yaml")}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

func TestDaemonSettingsMustFitTogether(t *testing.T) {
	for text, want := range map[string]string{
		"lease: { ttl: 5s }":                    ": lease: ",
		"http: { listen: 7480 }":                "http.listen: \"7480\" is not an address with a port",
		"http: { listen: \"127.0.0.1:77777\" }": "is not a port",
		"agent_transport: { names: [\"a b\"] }": "agent_transport.names[0]: \"a b\" is neither",
		"agent_transport: { protocol_min: { major: 2 }, protocol_max: { major: 1 } }": "is above",
		"log: { file: rel.log }": "log.file: \"rel.log\" is not an absolute path",
		"log: { keep: 101 }":     "101 is not from 0 to 100",
	} {
		_, err := config.LoadDaemon(config.Input{File: file(t, text)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "settings.yaml:1:") {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	d := config.DefaultDaemon()
	d.HTTP.Listen = "nowhere"
	if err := d.Validate(); err == nil {
		t.Error("a bad address passed Validate")
	}
}

func TestChangesAreToldApart(t *testing.T) {
	now, next := config.DefaultAgent(), config.DefaultAgent()
	if safe, restart := config.Changes(&now, &next); safe != nil || restart != nil {
		t.Errorf("nothing changed: %v, %v", safe, restart)
	}
	next.Log.Level, next.Reserve.CPU, next.Labels, next.Policy.AllowUnconfined = "debug", 500, []string{"a"}, true
	safe, restart := config.Changes(&now, &next)
	if diff := cmp.Diff([]string{"log.level"}, safe); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"labels", "reserve.cpu", "policy.allow_unconfined"}, restart); diff != "" {
		t.Error(diff)
	}
}

func TestEndpoints(t *testing.T) {
	for text, want := range map[string]string{
		"quic://h.example.org:7443": "h.example.org:7443", "h:1": "h:1", "quic://[::1]:7443/": "[::1]:7443", "127.0.0.1:65535": "127.0.0.1:65535",
		"http://h:1": "", "quic://h": "", "h": "", "quic://u@h:1": "", "quic://h:0": "", "quic://h:1/path": "", "quic://h:65536": "", ":1": "", "": "",
	} {
		got, err := config.Endpoint(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("Endpoint(%q) = %q, %v", text, got, err)
		}
	}
}

func FuzzSettings(f *testing.F) {
	for _, seed := range []string{"", "log: { level: debug }", "labels: [a, 1, ~]\n", "? a\n: b", "a: *b", "policy: { max_memory: 8GiB }", "!!x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name := filepath.Join(t.TempDir(), "a.yaml")
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		a, err := config.LoadAgent(config.Input{File: name})
		if err == nil {
			if err := a.Validate(); err != nil {
				t.Errorf("loaded settings are invalid: %v", err)
			}
		}
	})
}
