package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

// Decision D12: what a user is told to allow is enough for the program to run, and never the home folder itself.
func TestWhatIsToBeAllowedIsWhereTheProgramsAre(t *testing.T) {
	home := t.TempDir()
	rust := filepath.Join(home, ".rustup", "toolchains", "stable-x")
	if err := os.MkdirAll(filepath.Join(rust, "bin"), 0o750); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, dir, want string }{
		{"a version of nvm", ".nvm/versions/node/v22/bin", ".nvm/versions/node/v22"},
		{"shims, which call a program elsewhere", ".pyenv/shims", ".pyenv"},
		{"shims of a plugin", ".pyenv/plugins/virtualenv/shims", ".pyenv"},
		{"programs right below home", "bin", "bin"},
		{"programs beside data of everything", ".local/bin", ".local/bin"},
		{"names that rustup answers to, with no default", ".cargo/bin", ".cargo/bin"},
		{"a folder without bin", "sdk/tools", "sdk/tools"},
	} {
		if got := Toolchain(filepath.Join(home, c.dir), home); got != filepath.Join(home, c.want) {
			t.Errorf("%s: %s, want %s", c.what, got, filepath.Join(home, c.want))
		}
	}
	settings := []byte("version = \"12\"\ndefault_toolchain = \"stable-x\"\n")
	if err := os.WriteFile(filepath.Join(home, ".rustup", "settings.toml"), settings, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := Toolchain(filepath.Join(home, ".cargo", "bin"), home); got != rust {
		t.Errorf("rustup: %s, want %s", got, rust)
	}
	if got := Toolchain("/usr/bin", home); got != "/usr/bin" {
		t.Errorf("elsewhere: %s", got)
	}
}
