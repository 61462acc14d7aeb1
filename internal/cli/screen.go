package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/forgeyard/forgeyard/internal/api"
	"github.com/forgeyard/forgeyard/internal/console"
	"github.com/forgeyard/forgeyard/internal/display"
	"github.com/forgeyard/forgeyard/internal/display/terminal"
	"github.com/forgeyard/forgeyard/internal/telemetry"
)

// styleOf is how our own words look on an output.
func (a *app) styleOf(w io.Writer) display.Style {
	return display.StyleOf(a.env.Getenv, telemetry.IsTerminal(w))
}

// live reports whether a person sits at a terminal on which things can be drawn anew.
func (a *app) live() (*os.File, bool) {
	out, ok := a.env.Stdout.(*os.File)
	if !ok || a.output == "json" || a.env.Getenv("TERM") == "dumb" || !telemetry.IsTerminal(out) || !telemetry.IsTerminal(a.env.Stderr) {
		return nil, false
	}
	_, _, ok = terminal.Size(out)
	return out, ok && terminal.Prepare(out)
}

// openScreen shows something on a terminal until the function that it returns is called. It does nothing elsewhere.
func (a *app) openScreen(out *os.File, block terminal.Config) (t *terminal.Terminal, closeIt func() error) {
	resized, resumed, stop := terminal.Signals()
	width, height, _ := terminal.Size(out)
	block.Out, block.Resized, block.Resumed = out, resized, resumed
	block.Size = func() (int, int) {
		if w, h, ok := terminal.Size(out); ok {
			width, height = w, h
		}
		return width, height
	}
	t = terminal.New(block)
	go t.Run()
	a.screen.Store(t)
	var once sync.Once
	var err error
	return t, func() error {
		once.Do(func() {
			a.screen.Store(nil)
			err = t.Close()
			stop()
		})
		return err
	}
}

// tell shows a person a line that is safe for a terminal, beside the result.
func (a *app) tell(line string) {
	if t := a.screen.Load(); t != nil {
		if err := t.Print(line); err == nil || !errors.Is(err, terminal.ErrClosed) {
			return
		}
	}
	_, _ = io.WriteString(a.env.Stderr, line+"\n") // nobody is left to hear of it
}

// remarks is where parts of this process write their log: above what a terminal shows, while it shows something.
func (a *app) remarks() io.Writer { return remarks{a} }

type remarks struct{ a *app }

func (r remarks) Write(p []byte) (int, error) {
	if r.a.screen.Load() == nil {
		return r.a.env.Stderr.Write(p)
	}
	for line := range bytes.Lines(p) {
		r.a.tell(console.Cell(strings.TrimRight(string(line), "\n")))
	}
	return len(p), nil
}

// style is how our own words look where the follower shows them.
func (f *follower) style() display.Style {
	if f.app.output == "json" {
		return display.Style{}
	}
	return f.app.styleOf(f.app.env.Stderr)
}

// tell shows a line about the run, unless tools read.
func (f *follower) tell(line string) {
	if f.app.output != "json" {
		f.app.tell(line)
	}
}

// redraw draws the jobs anew, where they are drawn.
func (f *follower) redraw() {
	if f.screen != nil {
		f.screen.Redraw()
	}
}

// open draws the jobs below the logs from here on, where that is possible, until the function that it returns is called.
func (f *follower) open(hint string) (closeIt func() error) {
	f.board.view.Hint = hint
	out, ok := f.app.live()
	if !ok || f.raw {
		return func() error { return nil }
	}
	f.screen, closeIt = f.app.openScreen(out, terminal.Config{Block: f.board.block(f.style())})
	return closeIt
}

// leavesAlone is what Ctrl-C does to a run that is only watched.
const leavesAlone = "Ctrl-C leaves the run alone"

// watchLive shows a run as the command that started it does, and ends as the run does.
func (a *app) watchLive(ctx context.Context, client *api.Client, id string) error {
	f := a.follower(client, id, false)
	closeScreen := f.open(leavesAlone)
	err := f.watchMany(ctx)
	f.out.close()
	if err := errors.Join(err, closeScreen()); err != nil {
		return err
	}
	run, err := client.Run(ctx, id)
	if err != nil {
		return err
	}
	f.report(run)
	f.result(run)
	return a.exit(run)
}

// report tells at the end what failed, with the lines that led there, and what jobs remarked.
func (f *follower) report(run *api.Run) {
	if f.app.output == "json" {
		return
	}
	b, style := f.board, f.style()
	var lines []string
	for i := range run.Jobs {
		j := &run.Jobs[i]
		l := b.shown[j.ID]
		if j.State != "Failed" || j.Allowed || run.State == "Succeeded" || l == nil || !f.many && !l.later {
			continue
		}
		lines = append(lines, style.Failure(l.failure(b.jobs[j.ID]))...)
	}
	lines = append(lines, style.Notes(&b.notes, f.many)...)
	if len(lines) > 0 {
		lines = append(lines, "")
	}
	for _, line := range lines {
		f.tell(line)
	}
}
