// Package program is the one way in which our programs run: what a signal does, in which order parts stop, and which code
// the process ends with.
//
// The first SIGINT or SIGTERM asks for an orderly end: the context of main is cancelled, with a Signal as its cause, and
// main takes the time that it needs. The second one forces: Program.Force is cancelled, and main has ForceLimit to end
// before the process is ended under it. SIGHUP asks to read the configuration again.
//
// The package refuses to swallow a panic: it is reported in one line and the process ends with CodePanic. It owns one
// goroutine for signals, joined before Run returns, and one for main.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"
)

// The codes with which our programs end. Scripts and service managers rely on them.
const (
	CodeOK             = 0
	CodeFailed         = 1  // the run failed, or the program did
	CodeCancelled      = 2  // the run was cancelled, or the program was interrupted
	CodeInfrastructure = 3  // not the workload's fault, or done in part
	CodeAuth           = 4  // who asks is not known or may not
	CodePending        = 8  // no result yet
	CodeUsage          = 64 // wrong arguments or settings
	CodePanic          = 70 // a bug in the program
	CodeRefused        = 77 // the daemon will never have this agent again: revoked, deleted. Do not start it again.
	CodeSuperseded     = 78 // another process speaks for this agent. Do not start it again.
)

// ForceLimit is how long a program may take to end after the second signal.
const ForceLimit = 10 * time.Second

// An ExitError ends the program with a code. Err is what a person reads; without it nothing is printed.
type ExitError struct {
	Code int
	Err  error
}

// Error returns the text of Err.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// Exit returns err as an ExitError with a code.
func Exit(code int, err error) error { return &ExitError{Code: code, Err: err} }

// Code returns the code that an error ends a program with: that of the ExitError in it, else CodeFailed, and CodeOK
// without an error.
func Code(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return CodeOK
	case errors.As(err, &exit):
		return exit.Code
	}
	return CodeFailed
}

// A Signal is the cause of a context that a signal cancelled.
type Signal struct{ Signal os.Signal }

// Error says which signal it was.
func (s *Signal) Error() string { return "signal: " + s.Signal.String() }

// interrupted is what a program says that ends by the signal: which one it was, unless its user has just typed it.
func (s *Signal) interrupted() error {
	if s.Signal == os.Interrupt {
		return errors.New("interrupted")
	}
	return fmt.Errorf("interrupted (%v)", s.Signal)
}

// Options are what Run needs to know of a program.
type Options struct {
	Name   string                    // before messages
	Stderr io.Writer                 // for messages; nil: os.Stderr
	Log    *slog.Logger              // for panics and signals, besides Stderr; may be nil
	Reload func(ctx context.Context) // called at SIGHUP, one call at a time, and quick; nil: SIGHUP keeps its meaning

	forceLimit time.Duration  // zero: ForceLimit
	kill       func(code int) // nil: os.Exit
}

// A Program is what main has of the signals besides its context.
type Program struct {
	force       context.Context
	cancelForce context.CancelCauseFunc
}

// Force is cancelled at the second signal: whoever waits for something orderly stops waiting. A nil Program is never
// forced.
func (p *Program) Force() context.Context {
	if p == nil {
		return context.Background()
	}
	return p.force
}

// Run runs main and returns the code to end the process with. It prints the error of main, if it has a text, and returns
// only when its goroutines have ended.
func Run(ctx context.Context, o Options, main func(context.Context, *Program) error) int {
	o = o.withDefaults()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	p := &Program{}
	p.force, p.cancelForce = context.WithCancelCause(context.WithoutCancel(ctx))
	defer p.cancelForce(nil)

	signals := make(chan os.Signal, 4)
	signal.Notify(signals, o.wanted()...)
	ended, joined := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(joined)
		o.watch(ctx, signals, ended, stop, p)
	}()
	err := guard(func() error { return main(ctx, p) })
	var by, in *Signal
	if errors.As(context.Cause(ctx), &by) && (errors.Is(err, context.Canceled) || errors.As(err, &in)) {
		err = Exit(CodeCancelled, by.interrupted())
	}
	signal.Stop(signals)
	close(ended)
	<-joined
	return o.report(err)
}

func (o Options) withDefaults() Options {
	if o.Stderr == nil {
		o.Stderr = os.Stderr
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.forceLimit == 0 {
		o.forceLimit = ForceLimit
	}
	if o.kill == nil {
		o.kill = os.Exit
	}
	return o
}

func (o Options) wanted() []os.Signal {
	wanted := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if o.Reload != nil {
		wanted = append(wanted, syscall.SIGHUP)
	}
	return wanted
}

// watch turns signals into what they mean until main has ended.
func (o Options) watch(ctx context.Context, signals <-chan os.Signal, ended <-chan struct{}, stop context.CancelCauseFunc, p *Program) {
	asked := 0
	var limit <-chan time.Time
	for {
		select {
		case <-ended:
			return
		case <-limit:
			o.Log.Error("forced end: the program did not stop in time", "limit", o.forceLimit)
			fmt.Fprintf(o.Stderr, "%s: did not stop within %v of the second signal, ending now\n", o.Name, o.forceLimit)
			o.kill(CodeCancelled)
			return
		case s := <-signals:
			if s == syscall.SIGHUP {
				o.Reload(ctx)
				continue
			}
			asked++
			o.Log.Info("signal", "signal", s.String(), "count", asked)
			switch asked {
			case 1:
				stop(&Signal{Signal: s})
			case 2:
				p.cancelForce(&Signal{Signal: s})
				limit = time.After(o.forceLimit)
			}
		}
	}
}

// report prints why the program ends and returns its code.
func (o Options) report(err error) int {
	var bug *panicError
	var exit *ExitError
	switch {
	case err == nil:
		return CodeOK
	case errors.As(err, &bug):
		o.Log.Error("panic", "err", fmt.Sprint(bug.value), "stack", bug.stack)
		fmt.Fprintf(o.Stderr, "%s: internal error: %v (this is a bug; the stack follows)\n%s", o.Name, bug.value, bug.stack)
		return CodePanic
	case errors.As(err, &exit) && exit.Err == nil:
		return exit.Code
	}
	fmt.Fprintf(o.Stderr, "%s: %v\n", o.Name, err)
	return Code(err)
}

// A panicError is a panic on its way to report.
type panicError struct {
	value any
	stack string
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

// guard runs f and returns a panic of it as an error.
func guard(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: string(debug.Stack())}
		}
	}()
	return f()
}
