//go:build unix

package program

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// TestMain is also the program under test: with a role in its environment it is that program.
func TestMain(m *testing.M) {
	if role := os.Getenv("PROGRAM_ROLE"); role != "" {
		os.Exit(play(role))
	}
	goleak.VerifyTestMain(m)
}

func play(role string) int {
	o := Options{Name: "player", forceLimit: 50 * time.Millisecond}
	if role == "reload" {
		o.Reload = func(context.Context) { fmt.Println("reloaded") }
	}
	return Run(context.Background(), o, func(ctx context.Context, p *Program) error {
		if role == "guarded" { // before it is ready, which is when the test looks
			if err := errors.Join(wantCore(), Guard()); err != nil {
				return err
			}
		}
		fmt.Println("ready")
		switch role {
		case "graceful", "reload":
			<-ctx.Done()
			fmt.Println("stopping:", context.Cause(ctx))
			return nil
		case "guarded":
			<-ctx.Done()
			return nil
		case "namespaces":
			said := namespaces()
			fmt.Println(said)
			if said == "made" {
				<-ctx.Done()
			}
			return nil
		case "interrupted":
			<-ctx.Done()
			return fmt.Errorf("wait: %w", ctx.Err())
		case "caused":
			<-ctx.Done()
			return fmt.Errorf("wait: %w", context.Cause(ctx))
		case "forced":
			<-ctx.Done()
			fmt.Println("draining")
			<-p.Force().Done()
			return Exit(CodeFailed, errors.New("left work behind"))
		case "stuck":
			<-ctx.Done()
			fmt.Println("draining")
			select {}
		case "panic":
			panic("a bug")
		case "quiet":
			return Exit(CodePending, nil)
		}
		return errors.New("no such role")
	})
}

// A player is a child process that plays a role.
type player struct {
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	stderr bytes.Buffer
}

func start(t *testing.T, role string) *player {
	t.Helper()
	return startCommand(t, exec.Command(os.Args[0]), role)
}

func startCommand(t *testing.T, cmd *exec.Cmd, role string) *player {
	t.Helper()
	p := &player{cmd: cmd}
	p.cmd.Env = append(os.Environ(), "PROGRAM_ROLE="+role)
	p.cmd.Stderr = &p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.expect(t, "ready")
	return p
}

func (p *player) expect(t *testing.T, want string) {
	t.Helper()
	if !p.lines.Scan() || p.lines.Text() != want {
		t.Fatalf("the program said %q, want %q; stderr: %s", p.lines.Text(), want, &p.stderr)
	}
}

func (p *player) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

func (p *player) ends(t *testing.T, code int, message string) {
	t.Helper()
	for p.lines.Scan() {
		t.Errorf("the program also said %q", p.lines.Text())
	}
	_ = p.cmd.Wait() // its code is looked at below
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		t.Errorf("ended with code %d, want %d; stderr: %s", got, code, &p.stderr)
	}
	if !strings.Contains(p.stderr.String(), message) || message == "" && p.stderr.Len() > 0 {
		t.Errorf("stderr is %q, want %q in it", &p.stderr, message)
	}
}

func TestTheFirstSignalStopsInOrder(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		p := start(t, "graceful")
		p.signal(t, s)
		p.expect(t, "stopping: signal: "+s.String())
		p.ends(t, CodeOK, "")
	}
}

func TestAnInterruptedProgramSaysSo(t *testing.T) {
	for _, role := range []string{"interrupted", "caused"} { // whichever of the two a wait ends with
		for s, want := range map[syscall.Signal]string{syscall.SIGINT: "player: interrupted", syscall.SIGTERM: "player: interrupted (terminated)"} {
			p := start(t, role)
			p.signal(t, s)
			p.ends(t, CodeCancelled, want+"\n")
		}
	}
}

// Case B39.
func TestTheSecondSignalForces(t *testing.T) {
	p := start(t, "forced")
	p.signal(t, syscall.SIGTERM)
	p.expect(t, "draining")
	p.signal(t, syscall.SIGTERM)
	p.ends(t, CodeFailed, "player: left work behind")
}

// Case B39.
func TestAProgramThatDoesNotStopIsEnded(t *testing.T) {
	p := start(t, "stuck")
	p.signal(t, syscall.SIGTERM)
	p.expect(t, "draining")
	p.signal(t, syscall.SIGTERM)
	p.ends(t, CodeCancelled, "did not stop within 50ms of the second signal")
}

func TestHangupReloads(t *testing.T) {
	p := start(t, "reload")
	for range 2 {
		p.signal(t, syscall.SIGHUP)
		p.expect(t, "reloaded")
	}
	p.signal(t, syscall.SIGTERM)
	p.expect(t, "stopping: signal: terminated")
	p.ends(t, CodeOK, "")
}

func TestAPanicIsOneClearLineAndACode(t *testing.T) {
	p := start(t, "panic")
	p.ends(t, CodePanic, "player: internal error: a bug (this is a bug; the stack follows)\n")
}

func TestAnExitCodeWithoutAnErrorIsQuiet(t *testing.T) {
	start(t, "quiet").ends(t, CodePending, "")
}

func TestCodeFindsTheExitErrorInside(t *testing.T) {
	cause := errors.New("who are you?")
	for want, err := range map[int]error{
		CodeOK:     nil,
		CodeFailed: cause,
		CodeAuth:   fmt.Errorf("log in: %w", Exit(CodeAuth, cause)),
		CodeUsage:  Exit(CodeUsage, nil),
	} {
		if got := Code(err); got != want {
			t.Errorf("Code(%v) = %d, want %d", err, got, want)
		}
	}
	if err := Exit(CodeAuth, cause); !errors.Is(err, cause) || err.Error() != cause.Error() {
		t.Errorf("the exit error hides its cause: %v", err)
	}
}

func TestRunPassesTheEndOfItsContextOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	code := Run(ctx, Options{Name: "p", Stderr: io.Discard}, func(ctx context.Context, _ *Program) error {
		cancel()
		<-ctx.Done()
		return nil
	})
	if code != CodeOK {
		t.Errorf("code %d, want 0", code)
	}
}
