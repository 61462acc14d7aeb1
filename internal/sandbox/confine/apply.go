//go:build linux

package confine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrNotInside says that walls were to be built around a process that is not pid 1 of a sandbox.
var ErrNotInside = errors.New("confine: refused outside of pid 1 of a sandbox")

// Prepared is a process whose walls stand as far as they can before an order comes. It belongs to one goroutine.
type Prepared struct {
	walls  Walls
	rules  *ruleset          // nil where the kernel has no Landlock that will do, or it is switched off
	filter []unix.SockFilter // nil if it is switched off
}

// Prepare builds what does not depend on an order, so that a sandbox can wait ready. This process keeps the capabilities
// that attaching the attempt's folder needs; what it starts from now on has none. The caller has locked its goroutine to its
// thread, and starts every step from there. It takes most of the time.
func Prepare(w Walls) (*Prepared, error) {
	if os.Getpid() != 1 {
		return nil, ErrNotInside
	}
	p := &Prepared{walls: w}
	for _, wall := range []struct {
		defence string
		build   func() error
	}{
		{DefenceLimits, limit},
		{DefenceUndumpable, undumpable},
		{DefenceCapabilities, bound},
		{DefenceNoNewPrivs, noNewPrivs},
		{DefenceLandlock, p.openRules},
		{DefenceSeccomp, p.assemble},
	} {
		if w.Switches.off(wall.defence) {
			continue
		}
		if err := wall.build(); err != nil {
			return nil, fmt.Errorf("confine: %w", err)
		}
	}
	return p, nil
}

// Apply confines this process and all that it will start, for good, once the view is sealed. processes bounds those of one id
// where no control group counts them; 0 means no bound. Without an error every wall stands that the kernel has and that is
// not switched off; with one the process must end.
func (p *Prepared) Apply(processes uint64) error {
	for _, build := range []func() error{
		func() error { return limitProcesses(processes) }, p.drop, p.restrict, p.install,
	} {
		if err := build(); err != nil {
			return fmt.Errorf("confine: %w", err)
		}
	}
	return nil
}

// Apply prepares and applies in one.
func Apply(w Walls) error {
	p, err := Prepare(w)
	if err != nil {
		return err
	}
	return p.Apply(w.Processes)
}

func undumpable() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("keep this process's memory to itself: %w", err)
	}
	return nil
}

func noNewPrivs() error {
	return prctl("set no_new_privs", unix.PR_SET_NO_NEW_PRIVS, 1, 0)
}

// drop leaves this process the capabilities that keeping steps needs.
func (p *Prepared) drop() error {
	switch {
	case p.walls.Switches.off(DefenceCapabilities):
		return nil
	case p.walls.Mapped:
		return capset(kept)
	}
	return capset(0)
}

func (p *Prepared) assemble() error {
	var err error
	if len(p.walls.Filter) > 0 {
		p.filter, err = read(p.walls.Filter)
		return err
	}
	p.filter, err = assembled(product(p.walls.Mapped))
	return err
}

func (p *Prepared) install() error {
	if p.filter == nil {
		return nil
	}
	return install(p.filter)
}
