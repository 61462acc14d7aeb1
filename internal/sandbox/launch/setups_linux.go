package launch

import (
	"fmt"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/sandbox"
	"github.com/forgeyard/forgeyard/internal/sandbox/confine"
	"github.com/forgeyard/forgeyard/internal/sandbox/view"
)

// setups are the set-ups of one configuration, planned once for each kind of network.
type setups struct {
	age    int // counts configurations
	plans  map[forge.Network]view.Plan
	filter []byte
	cfg    sandbox.Configure
}

// newSetups plans views. Its error says what of the configuration cannot be.
func newSetups(cfg *sandbox.Configure) (*setups, error) {
	own, err := view.Own()
	if err != nil {
		return nil, err
	}
	filter, err := confine.Filter(!cfg.Rootless)
	if err != nil {
		return nil, err
	}
	s := &setups{cfg: *cfg, plans: map[forge.Network]view.Plan{}, filter: filter}
	for _, network := range []forge.Network{forge.NetworkNone, forge.NetworkHost} {
		plan, err := view.New(view.Machine(), view.Options{
			ReadOnly: binds(cfg.View.ReadOnly), Hide: append([]string{cfg.State}, cfg.View.Hide...), Network: network,
			UID: sandbox.StepUID, GID: sandbox.StepGID, Mapped: !cfg.Rootless, HostNS: own, Switches: viewSwitches(cfg.Switches),
		})
		if err != nil {
			return nil, fmt.Errorf("what sandboxes are to see: %w", err)
		}
		s.plans[network] = plan
	}
	return s, nil
}

func binds(mounts []sandbox.Mount) []view.Bind {
	all := make([]view.Bind, 0, len(mounts))
	for _, m := range mounts {
		all = append(all, view.Bind{Source: m.Source, Target: m.Target})
	}
	return all
}

// of returns the set-up for a network and a size of /dev/shm.
func (s *setups) of(network forge.Network, shm forge.Bytes) setup {
	plan := s.plans[network]
	plan.Shm = shm
	return setup{Plan: plan, Mapped: !s.cfg.Rootless, Network: network, Path: s.cfg.View.Path, Filter: s.filter, Switches: s.cfg.Switches}
}
