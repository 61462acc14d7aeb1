//go:build linux

package fleet

import (
	"context"
	"fmt"

	"github.com/forgeyard/forgeyard/internal/relay"
)

// Road is a relay between one agent and the daemon.
type Road struct {
	*relay.Relay
	cancel context.CancelFunc
	done   chan error
}

// Road opens a relay to the daemon. It belongs to the fleet, which closes it.
func (f *Fleet) Road(seed uint64) (*Road, error) {
	r, err := relay.Open(relay.Config{Listen: "127.0.0.1:0", To: f.Daemon.Endpoint(), Seed: seed})
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	road := &Road{Relay: r, cancel: cancel, done: make(chan error, 1)}
	go func() { road.done <- r.Run(ctx) }()
	f.mu.Lock()
	f.roads = append(f.roads, road)
	f.mu.Unlock()
	return road, nil
}

// Break lets nothing through in either direction, until Mend.
func (r *Road) Break() { r.Cut(relay.Up, relay.Down) }

// Mend ends every cut.
func (r *Road) Mend() { r.Heal(relay.Up, relay.Down) }

// close ends the relay and waits for it.
func (r *Road) close() error {
	r.cancel()
	return <-r.done
}
