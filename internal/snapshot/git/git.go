// Package git asks the git program about one repository, and only about that one: nothing that a user, a machine or an
// environment has configured takes part, so that the same repository gives the same answers everywhere.
//
// What runs is the git of the PATH, in a process group of its own that is killed with its context; its output and time are
// bounded. It reads no system or global configuration, takes no optional lock, runs no hook, no file system monitor and no
// transport, asks nobody for a password, and sees no variable of git's that this process has. The repository's own
// configuration holds, except for what would run a program or make the answer depend on the machine.
//
//	Find    which folder is the top of the repository around a folder
//	Open    a repository, its folders and the kind of its hashes
//	List    what belongs to its source: tracked, and untracked but not ignored
//	Head    the commit that is checked out, with the names it has
//	Clean   a repository of that commit alone, the same bytes for everybody who has it
//
// Nothing here writes into the repository. A Repo may be used by many at once; its methods join what they start.
package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Bounds of one call of git.
const (
	maxOutput = 1 << 30          // bytes that are kept in memory
	maxError  = 16 << 10         // bytes of what it says about a failure
	maxTime   = 10 * time.Minute // for a large repository on a slow disk
	killDelay = 2 * time.Second  // from the kill to the moment when its pipes are closed on it
)

// Errors of repositories, tested with errors.Is.
var (
	ErrNone     = errors.New("no git repository")
	ErrBare     = errors.New("a bare git repository, which has no files checked out")
	ErrNoCommit = errors.New("the git repository has no commit yet")
)

// Error is a call of git that failed.
type Error struct {
	Dir  string
	Args []string
	Text string // what git said, clipped
	Err  error  // of the process; *exec.ExitError where it ended by itself
}

func (e *Error) Error() string {
	verb := e.Args[0]
	for i := 0; verb == "-c" && i+2 < len(e.Args); i += 2 {
		verb = e.Args[i+2]
	}
	text := strings.TrimSpace(e.Text)
	if text == "" {
		return fmt.Sprintf("git %s in %s: %v", verb, e.Dir, e.Err)
	}
	return fmt.Sprintf("git %s in %s: %v: %s", verb, e.Dir, e.Err, text)
}

func (e *Error) Unwrap() error { return e.Err }

// Repo is one repository with files checked out.
type Repo struct {
	Top    string // the folder of the files
	Dir    string // the repository's own folder: .git, or that of a linked worktree or submodule
	Common string // what linked worktrees share; else the same as Dir
	Hash   string // sha1 or sha256

	home string // the only home that git sees
}

// Find returns the top of the repository around dir, as .git shows it. The error is of the kind ErrNone where there is none,
// and ErrBare where dir is, or is within, a repository's own folder.
func Find(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, nil
		}
		if isGitFolder(at) {
			return "", fmt.Errorf("%s is %w", at, ErrBare)
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("%s: %w", dir, ErrNone)
		}
	}
}

// isGitFolder reports whether dir looks like a repository's own folder, by what git itself looks for.
func isGitFolder(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.IsDir() == (name == "HEAD") {
			return false
		}
	}
	return true
}

// Open returns the repository whose top Find has returned. Close it.
func Open(ctx context.Context, top string) (*Repo, error) {
	home, err := os.MkdirTemp("", "forgeyard-git-")
	if err != nil {
		return nil, err
	}
	r := &Repo{Top: top, home: home}
	// Git refuses folders of other users, because their configuration may run programs. What it may run is turned off below.
	text := "[safe]\n\tdirectory = " + quote(filepath.ToSlash(top)) + "\n"
	if err = os.WriteFile(r.global(), []byte(text), 0o600); err == nil {
		err = r.describe(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// Close removes what Open made.
func (r *Repo) Close() error { return os.RemoveAll(r.home) }

func (r *Repo) global() string { return filepath.Join(r.home, ".gitconfig") }

// quote writes a value of git's configuration.
func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(value) + `"`
}

func (r *Repo) describe(ctx context.Context) error {
	out, err := r.output(ctx, "rev-parse", "--path-format=absolute", "--show-object-format", "--absolute-git-dir",
		"--git-common-dir", "--is-bare-repository", "--show-toplevel")
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) > 3 && lines[3] == "true" {
		return fmt.Errorf("%s is %w", r.Top, ErrBare)
	}
	if err != nil {
		return err
	}
	if len(lines) != 5 {
		return fmt.Errorf("git describes %q in %d lines instead of 5: a folder's name must not have line breaks", r.Top, len(lines))
	}
	r.Hash, r.Dir, r.Common, r.Top = lines[0], filepath.FromSlash(lines[1]), filepath.FromSlash(lines[2]), filepath.FromSlash(lines[4])
	return nil
}

// settings are the repository's settings that do not hold: they would run a program, write, or make the answer depend on the
// machine.
var settings = []string{
	"core.fsmonitor=false", "core.hooksPath=/dev/null", "core.excludesFile=", "core.attributesFile=", "core.quotePath=false",
	"core.pager=cat", "protocol.allow=never", "credential.helper=", "gc.auto=0", "maintenance.auto=false",
	"submodule.recurse=false", "status.submoduleSummary=false", "status.renames=false", "log.showSignature=false",
}

func (r *Repo) command(ctx context.Context, args []string) *exec.Cmd {
	all := []string{"-C", r.Top, "--no-pager"}
	for _, s := range settings {
		all = append(all, "-c", s)
	}
	cmd := exec.CommandContext(ctx, "git", append(all, args...)...)
	cmd.Env = r.environment()
	cmd.WaitDelay = killDelay
	ownGroup(cmd)
	return cmd
}

func (r *Repo) environment() []string {
	env := []string{
		"HOME=" + r.home, "XDG_CONFIG_HOME=" + filepath.Join(r.home, "none"), "LC_ALL=C", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + r.global(), "GIT_ATTR_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(r.Top), // a broken repository is an error, not a reason to look further up
		"GIT_OPTIONAL_LOCKS=0", "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "GIT_FLUSH=0",
	}
	for _, name := range []string{"PATH", "TMPDIR", "TEMP", "TMP", "SYSTEMROOT", "PATHEXT", "COMSPEC"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// output runs git and returns what it wrote. With an error it returns what came before.
func (r *Repo) output(ctx context.Context, args ...string) ([]byte, error) {
	return r.answer(ctx, nil, args...)
}

// answer is output of a git that reads stdin.
func (r *Repo) answer(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	var out []byte
	err := r.stream(ctx, stdin, func(from io.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(from, maxOutput+1))
		if err == nil && len(out) > maxOutput {
			err = fmt.Errorf("more than %d bytes of output", maxOutput)
		}
		return err
	}, args...)
	return out, err
}

// stream runs git, with stdin for it to read, and read to read what it writes. An error of read ends it and is returned.
func (r *Repo) stream(ctx context.Context, stdin io.Reader, read func(io.Reader) error, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, maxTime, fmt.Errorf("took longer than %s", maxTime))
	defer cancel()
	cmd := r.command(ctx, args)
	said := &clipped{}
	cmd.Stdin, cmd.Stderr = stdin, said
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return &Error{Dir: r.Top, Args: args, Err: err}
	}
	failed := read(out)
	if failed != nil {
		cancel()
	}
	err = cmd.Wait()
	switch {
	case failed != nil:
		return &Error{Dir: r.Top, Args: args, Text: said.String(), Err: failed}
	case ctx.Err() != nil:
		return &Error{Dir: r.Top, Args: args, Text: said.String(), Err: context.Cause(ctx)}
	case err != nil:
		return &Error{Dir: r.Top, Args: args, Text: said.String(), Err: err}
	}
	return nil
}

// exited reports whether err is that of a git that ended with a code.
func exited(err error, code int) bool {
	var exit *exec.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == code
}

// clipped keeps the beginning of what is written to it.
type clipped struct{ bytes.Buffer }

func (c *clipped) Write(data []byte) (int, error) {
	if room := maxError - c.Len(); room > 0 {
		c.Buffer.Write(data[:min(room, len(data))])
	}
	return len(data), nil
}
