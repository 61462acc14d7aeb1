package store

import (
	"github.com/forgeyard/forgeyard/internal/digest"
	"github.com/forgeyard/forgeyard/internal/forge"
)

// Runner returns a runner, or ErrNotFound.
func (v *View) Runner(id forge.RunnerID) (Runner, error) { return Runner{}, errUnbuilt }

// RunnerByName returns a runner that is not deleted, or ErrNotFound.
func (v *View) RunnerByName(name string) (Runner, error) { return Runner{}, errUnbuilt }

// Runners lists the runners that are not deleted by id, those after the given one, at most limit.
func (v *View) Runners(after forge.RunnerID, limit int) ([]Runner, error) { return nil, errUnbuilt }

// OpenLeases lists the open leases of one runner or, with a zero id, of all, in the order of their ids.
func (v *View) OpenLeases(runner forge.RunnerID) ([]OpenLease, error) { return nil, errUnbuilt }

// CreateRunner makes a runner with its empty session. ErrExists where the name or id is taken.
func (tx *Tx) CreateRunner(n NewRunner) error { return errUnbuilt }

// ChangeRunner changes what an administrator may change. ErrNotFound, or ErrExists where the name is taken.
func (tx *Tx) ChangeRunner(id forge.RunnerID, c RunnerChange) error { return errUnbuilt }

// DeleteRunner takes a runner out of every listing, frees its name and revokes it for good. Its row stays for the attempts
// that refer to it. ErrInUse while it has an open lease.
func (tx *Tx) DeleteRunner(id forge.RunnerID) error { return errUnbuilt }

// SetCapabilities keeps the latest snapshot of a runner.
func (tx *Tx) SetCapabilities(id forge.RunnerID, c forge.Capabilities, d digest.Digest) error {
	return errUnbuilt
}

// SetSummary keeps what the latest heartbeat said, and when. Beats count for authority in their own rule; this is for people
// and for the scheduler.
func (tx *Tx) SetSummary(id forge.RunnerID, s forge.ResourceSummary) error { return errUnbuilt }

// SetHealth keeps the latest health report.
func (tx *Tx) SetHealth(id forge.RunnerID, h forge.Health) error { return errUnbuilt }
