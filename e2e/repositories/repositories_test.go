//go:build linux

package repositories_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/fleet"
)

// Bounds of what a repository may take; a machine with two busy cores needs a fraction of them.
const (
	commandWithin = 6 * time.Minute
	fleetWithin   = 9 * time.Minute
)

var build fleet.Build

func TestMain(m *testing.M) {
	code := m.Run()
	build.Remove()
	os.Exit(code)
}

func programs(t *testing.T) fleet.Programs {
	t.Helper()
	if testing.Short() {
		t.Skip("whole repositories are left out with -short")
	}
	p, err := build.Programs(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A repository is one of the folders beside this file, and what its pipeline must do.
type repository struct {
	name  string
	tools []string // programs of this machine that its jobs use
	// history makes the history of git: the files are there, none is committed yet. Nil means one commit.
	history func(*tree)
	// kept are the artifacts of a run that ended well, each by its name, or its name and its leg.
	kept func(*testing.T, *run)
	// again is what a second run must have found of the first. Nil: there is none.
	again func(t *testing.T, first, second *run)
}

// A mode is where pipelines run.
type mode struct {
	name string
	env  []string // of the command: where its daemon is, or its own folders
}

// A run is one end of "forgeyard run".
type run struct {
	t      *testing.T
	mode   mode
	run    *api.Run
	output string // standard output and error together
	dir    string // for artifacts
}

// command runs the command and returns what it printed on standard output, and that with standard error.
func (m mode) command(t *testing.T, dir string, args ...string) (stdout []byte, all string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, programs(t).Command, args...)
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "FORGEYARD_") }), m.env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends what it has started
	cmd.WaitDelay = 30 * time.Second
	var out, both bytes.Buffer
	var mu sync.Mutex
	cmd.Stdout = writer(func(p []byte) { mu.Lock(); defer mu.Unlock(); out.Write(p); both.Write(p) })
	cmd.Stderr = writer(func(p []byte) { mu.Lock(); defer mu.Unlock(); both.Write(p) })
	err = cmd.Run()
	return out.Bytes(), both.String(), err
}

type writer func([]byte)

func (w writer) Write(p []byte) (int, error) { w(p); return len(p), nil }

// ask runs a command that answers in JSON.
func (m mode) ask(t *testing.T, into any, args ...string) {
	t.Helper()
	out, all, err := m.command(t, t.TempDir(), append(args, "-o", "json")...)
	if err != nil {
		t.Fatalf("forgeyard %s: %v\n%s", strings.Join(args, " "), err, all)
	}
	if err := json.Unmarshal(out, into); err != nil {
		t.Fatalf("forgeyard %s: %v in %s", strings.Join(args, " "), err, out)
	}
}

// run runs the pipeline as its user does.
func (m mode) run(t *testing.T, dir string) *run {
	t.Helper()
	begin := time.Now()
	_, all, err := m.command(t, dir, "run")
	if err != nil {
		t.Fatalf("forgeyard run: %v\n%s", err, all)
	}
	t.Logf("forgeyard run took %v", time.Since(begin).Round(100*time.Millisecond))
	id := ""
	for line := range strings.Lines(all) {
		if rest, ok := strings.CutPrefix(line, "run "); ok && id == "" {
			id = strings.TrimSpace(rest)
		}
	}
	r := &run{t: t, mode: m, output: all, run: new(api.Run), dir: t.TempDir()}
	m.ask(t, r.run, "runs", "show", id)
	if r.run.State != "Succeeded" {
		t.Fatalf("the run is %s: %s\n%s", r.run.State, r.run.Reason, all)
	}
	return r
}

// artifact fetches an artifact of a job's leg, which is its values with commas between, and returns its folder.
func (r *run) artifact(job, leg, name string) string {
	r.t.Helper()
	var list api.List[api.Artifact]
	r.mode.ask(r.t, &list, "artifact", "list", r.run.ID)
	id := ""
	for _, a := range list.Items {
		if a.Name == name && a.Job == r.job(job, leg).ID {
			id = a.ID
		}
	}
	if id == "" {
		r.t.Fatalf("%s %s has kept no %s; there are %+v", job, leg, name, list.Items)
	}
	into := filepath.Join(r.dir, job, leg, name)
	if _, all, err := r.mode.command(r.t, r.dir, "artifact", "get", id, "--to", into); err != nil {
		r.t.Fatalf("forgeyard artifact get: %v\n%s", err, all)
	}
	return into
}

// job returns a job's leg.
func (r *run) job(key, leg string) *api.Job {
	r.t.Helper()
	for i := range r.run.Jobs {
		var values []string
		for _, v := range r.run.Jobs[i].Leg {
			values = append(values, v.Value)
		}
		if r.run.Jobs[i].Key == key && strings.Join(values, ",") == leg {
			return &r.run.Jobs[i]
		}
	}
	r.t.Fatalf("the run has no job %s %s", key, leg)
	return nil
}

// log returns the log of a job's leg.
func (r *run) log(job, leg string) string {
	r.t.Helper()
	_, all, err := r.mode.command(r.t, r.dir, "logs", r.job(job, leg).ID)
	if err != nil {
		r.t.Fatalf("forgeyard logs: %v\n%s", err, all)
	}
	return all
}

// says checks the content of a file of an artifact.
func says(t *testing.T, want string, path ...string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Error(err)
	} else if string(got) != want {
		t.Errorf("%s says %q, want %q", filepath.Base(filepath.Join(path...)), got, want)
	}
}

// printed runs a program of an artifact and checks what it prints.
func printed(t *testing.T, want, program string, args ...string) {
	t.Helper()
	got, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	if err != nil || string(got) != want {
		t.Errorf("%s printed %q, want %q; %v", filepath.Base(program), got, want, err)
	}
}

// A tree is a repository in a folder of its own.
type tree struct {
	t   *testing.T
	dir string
	at  time.Time // of the next commit
}

// newTree copies a repository and makes its history.
func newTree(t *testing.T, r repository) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "fyrepo")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	x := &tree{t: t, dir: filepath.Join(dir, r.name), at: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)}
	if err := os.CopyFS(x.dir, os.DirFS(r.name)); err != nil {
		t.Fatal(err)
	}
	x.git("init", "-q", "-b", "main")
	if r.history == nil {
		x.commit("everything")
		return x.dir
	}
	r.history(x)
	return x.dir
}

// git runs git in the tree.
func (x *tree) git(args ...string) {
	x.t.Helper()
	x.gitIn(".", args...)
}

// gitIn runs git in a folder of the tree, with names and times that are always the same and without this user's settings.
func (x *tree) gitIn(folder string, args ...string) {
	x.t.Helper()
	cmd := exec.CommandContext(x.t.Context(), "git", args...)
	cmd.Dir = filepath.Join(x.dir, folder)
	at := fmt.Sprintf("%d +0000", x.at.Unix())
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_AUTHOR_DATE="+at,
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org", "GIT_COMMITTER_DATE="+at)
	if out, err := cmd.CombinedOutput(); err != nil {
		x.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// commit commits everything that is there.
func (x *tree) commit(message string) {
	x.t.Helper()
	x.git("add", "--all")
	x.git("commit", "-q", "--allow-empty", "-m", message)
	x.at = x.at.Add(time.Hour)
}

// write writes a file, and the folders that it stands in.
func (x *tree) write(name, content string) {
	x.t.Helper()
	path := filepath.Join(x.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		x.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		x.t.Fatal(err)
	}
}

// link makes a symbolic link.
func (x *tree) link(target, name string) {
	x.t.Helper()
	if err := os.Symlink(target, filepath.Join(x.dir, name)); err != nil {
		x.t.Fatal(err)
	}
}

// need skips the test of a repository whose jobs use what this machine does not show them.
func (r repository) need(t *testing.T) {
	t.Helper()
	for _, tool := range r.tools {
		if !slices.ContainsFunc([]string{"/usr/local/go/bin", "/usr/local/bin", "/usr/bin", "/bin"}, func(dir string) bool {
			info, err := os.Stat(filepath.Join(dir, tool))
			return err == nil && info.Mode()&0o111 != 0
		}) {
			t.Skipf("this machine has no %s in the folders of its system", tool)
		}
	}
}

func (r repository) play(t *testing.T, m mode) {
	dir := newTree(t, r)
	first := m.run(t, dir)
	r.kept(t, first)
	if r.again == nil {
		return
	}
	second := m.run(t, dir)
	r.kept(t, second)
	r.again(t, first, second)
}

// Every folder here that is a repository is played.
func TestNoRepositoryIsForgotten(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var found, played []string
	for _, e := range entries {
		if _, err := os.Stat(filepath.Join(e.Name(), ".forgeyard.yml")); err == nil && e.IsDir() {
			found = append(found, e.Name())
		}
	}
	for _, r := range repositories {
		played = append(played, r.name)
	}
	slices.Sort(played)
	if !slices.Equal(found, played) {
		t.Errorf("there are %v, played are %v", found, played)
	}
}

func TestRepositoriesRunOnADaemonWithTwoAgents(t *testing.T) {
	p := programs(t)
	dir, err := os.MkdirTemp("", "fy")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), fleetWithin)
	f, err := fleet.New(filepath.Join(dir, "f"), p, fleet.Usual, t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := f.Daemon.Start(ctx); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		a, err := f.AddAgent(ctx, name, 2, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Start(); err != nil {
			t.Fatal(err)
		}
		if err := a.AwaitOnline(ctx); err != nil {
			t.Fatal(err)
		}
	}
	m := mode{name: "daemon", env: []string{
		"XDG_DATA_HOME=" + filepath.Join(dir, "data"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
		"FORGEYARD_SERVER=unix://" + f.Daemon.Socket(),
	}}
	t.Run("all", func(t *testing.T) { // which ends when every one has
		for _, r := range repositories {
			t.Run(r.name, func(t *testing.T) {
				r.need(t)
				t.Parallel()
				r.play(t, m)
			})
		}
	})
}

// files lists the files below a folder, sorted, with slashes.
func files(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, e := filepath.Rel(dir, path)
			names, err = append(names, name), e
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return names
}

func TestRepositoriesRunWithoutAServer(t *testing.T) {
	programs(t)
	for _, r := range repositories {
		t.Run(r.name, func(t *testing.T) {
			r.need(t)
			t.Parallel()
			r.play(t, standalone(t))
		})
	}
}

// standalone is a user who has not run anything yet.
func standalone(t *testing.T) mode {
	t.Helper()
	dir, err := os.MkdirTemp("", "fy") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return mode{name: "standalone", env: []string{
		"XDG_DATA_HOME=" + filepath.Join(dir, "data"), "XDG_CONFIG_HOME=" + filepath.Join(dir, "config"),
	}}
}
