package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/forgeyard/forgeyard/config"
)

func localFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "local.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// Decision D12: what a user has allowed stands in a file of theirs, and without one nothing is allowed.
func TestLocalSettingsNameToolchainsBelowTheHomeFolder(t *testing.T) {
	file := localFile(t, "toolchains: [~/.pyenv, /opt/x]\nread_only: [\"~/data:/data\"]\nenvironment: {pass: [GOPRIVATE]}\n")
	got, err := config.LoadLocal(config.Input{File: file}, "/home/ada")
	if err != nil {
		t.Fatal(err)
	}
	want := config.Local{
		Toolchains: []string{"/home/ada/.pyenv", "/opt/x"}, ReadOnly: []string{"/home/ada/data:/data"},
		Environment: config.Environment{Pass: []string{"GOPRIVATE"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	none, err := config.LoadLocal(config.Input{File: file + ".none"}, "/home/ada")
	if err != nil || len(none.Toolchains)+len(none.ReadOnly)+len(none.Environment.Pass) != 0 {
		t.Errorf("without a file: %+v, %v", none, err)
	}
}

func TestWrongLocalSettingsAreToldAllAtOnceWithTheirLines(t *testing.T) {
	file := localFile(t, "toolchains: [go]\ntoolchain: [/x]\nenvironment:\n  pass: [\"A B\", FORGEYARD_X]\n")
	_, err := config.LoadLocal(config.Input{File: file}, "/home/ada")
	for _, want := range []string{"local.yaml:2:1", `did you mean "toolchains"`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
	file = localFile(t, "toolchains: [go]\nenvironment:\n  pass: [\"A B\", FORGEYARD_X]\n")
	_, err = config.LoadLocal(config.Input{File: file}, "/home/ada")
	for _, want := range []string{`toolchains[0]`, "not an absolute path", "environment.pass[0]", "environment.pass[1]"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}

func TestAToolchainIsAddedAndTakenAwayAndTheRestStaysAsItIs(t *testing.T) {
	for _, c := range []struct{ what, text, folder, want string }{
		{"into nothing", "", "/h/.pyenv", "toolchains:\n  - \"/h/.pyenv\"\n"},
		{"behind a comment", "# mine\n", "/h/x", "# mine\ntoolchains:\n  - \"/h/x\"\n"},
		{"into a list", "# mine\nread_only: [/d] # data\ntoolchains: [/a]\n", "/h/x", "# mine\nread_only: [/d] # data\ntoolchains:\n- /a\n- /h/x\n"},
		{"into an empty list", "toolchains: []\n", "/h/x", "toolchains:\n- /h/x\n"},
	} {
		text, done, err := config.WithToolchain([]byte(c.text), c.folder, true)
		if err != nil || !done {
			t.Fatalf("%s: %v, %v", c.what, done, err)
		}
		if diff := cmp.Diff(c.want, string(text)); diff != "" {
			t.Errorf("%s: %s", c.what, diff)
		}
		if _, done, err := config.WithToolchain(text, c.folder, true); done || err != nil {
			t.Errorf("%s: added twice; %v", c.what, err)
		}
		text, done, err = config.WithToolchain(text, c.folder, false)
		if err != nil || !done || strings.Contains(string(text), c.folder) {
			t.Errorf("%s: taken away: %s; %v, %v", c.what, text, done, err)
		}
		if _, err := config.LoadLocal(config.Input{File: localFile(t, string(text))}, "/h"); err != nil {
			t.Errorf("%s: what is left cannot be read: %v", c.what, err)
		}
	}
	if _, done, err := config.WithToolchain(nil, "/x", false); done || err != nil {
		t.Errorf("from nothing: %v, %v", done, err)
	}
}
