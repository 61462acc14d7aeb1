package git

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAnAddressTellsWhereARepositoryIsAndNoSecret(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"https://example.org/o/r.git":                    "https://example.org/o/r.git",
		"https://secret@example.org/o/r.git":             "https://example.org/o/r.git",
		"https://u:secret@example.org:8443/r?t=secret#x": "https://example.org:8443/r",
		"HTTP://x-token:secret@h/r":                      "http://h/r",
		"ssh://git:secret@example.org:22/r.git":          "ssh://git@example.org:22/r.git",
		"git@example.org:o/r.git":                        "git@example.org:o/r.git",
		"example.org:o/r.git":                            "example.org:o/r.git",
		"u:secret@example.org:o/r.git":                   "",
		"https://u:sec%ret@example.org/":                 "",
		"file:///home/ann/secret":                        "",
		"/home/ann/r":                                    "",
		"../r":                                           "",
		`C:\Users\ann\r`:                                 "",
		"C:/Users/ann/r":                                 "",
		"ext::sh -c secret":                              "",
		"https:///r":                                     "",
		"":                                               "",
	} {
		if got := publicURL(address); got != want {
			t.Errorf("publicURL(%q) = %q, want %q", address, got, want)
		}
	}
}

func TestTheRemoteIsThatOfTheBranchThenOriginThenTheOnlyOne(t *testing.T) {
	t.Parallel()
	all := map[string]string{"remote.origin.url": "o", "remote.up.url": "u", "branch.main.remote": "up", "branch.local.remote": "."}
	for branch, want := range map[string]string{"main": "u", "other": "o", "local": "o", "": "o"} {
		if got := origin(all, branch); got != want {
			t.Errorf("of %q: %q, want %q", branch, got, want)
		}
	}
	if got := origin(map[string]string{"remote.up.url": "u"}, "x"); got != "u" {
		t.Errorf("the only one: %q", got)
	}
	if got := origin(map[string]string{"remote.a.url": "a", "remote.b.url": "b"}, "x"); got != "" {
		t.Errorf("one of two: %q", got)
	}
}

// repo is a new repository.
func repo(t *testing.T) *Repo {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("git", "init", "-q", dir)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent"}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r, err := Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestNothingOfTheEnvironmentReachesGit(t *testing.T) {
	t.Setenv("GIT_DIR", "/nonexistent")
	t.Setenv("GIT_CONFIG_PARAMETERS", "'core.secret'='x'")
	t.Setenv("GIT_TRACE", "1")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	r := repo(t)
	for _, v := range r.environment() {
		if strings.Contains(v, "secret") || strings.HasPrefix(v, "GIT_DIR") || strings.HasPrefix(v, "GIT_TRACE") {
			t.Errorf("git gets %s", v)
		}
	}
	if out, err := r.output(t.Context(), "config", "--show-scope", "--list"); err != nil || strings.Contains(string(out), "system\t") || strings.Contains(string(out), "secret") {
		t.Errorf("%s %v", out, err)
	}
}

func TestAGitThatIsNotWaitedForIsKilledWithWhatItStarted(t *testing.T) {
	t.Parallel()
	r := repo(t)
	fifo := filepath.Join(t.TempDir(), "fifo")
	if out, err := exec.Command("mkfifo", fifo).CombinedOutput(); err != nil {
		t.Skipf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	ended := make(chan error, 1)
	go func() {
		// The alias is a child of git's; it says that it is there, and would stay.
		_, err := r.output(ctx, "-c", "alias.stay=!echo there > '"+fifo+"'; exec sleep 600", "stay")
		ended <- err
	}()
	if _, err := os.ReadFile(fifo); err != nil {
		t.Fatal(err)
	}
	cancel(why)
	select {
	case err := <-ended:
		if !errors.Is(err, why) {
			t.Errorf("%v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the child holds the pipe open")
	}
}

func TestWhatGitSaysOfAFailureIsPassedOnInBounds(t *testing.T) {
	t.Parallel()
	r := repo(t)
	_, err := r.output(t.Context(), "cat-file", "-p", strings.Repeat("x", 100_000))
	var failed *Error
	if !errors.As(err, &failed) || !exited(err, 128) || len(failed.Text) > maxError || !strings.HasPrefix(failed.Error(), "git cat-file in ") {
		t.Errorf("%.200v", err)
	}
	var c clipped
	if n, err := c.Write(make([]byte, 2*maxError)); n != 2*maxError || err != nil || c.Len() != maxError {
		t.Errorf("%d, %v, %d kept", n, err, c.Len())
	}
	if err := r.stream(t.Context(), nil, func(io.Reader) error { return errors.New("no more") }, "version"); err == nil || !strings.Contains(err.Error(), "no more") {
		t.Errorf("%v", err)
	}
}
