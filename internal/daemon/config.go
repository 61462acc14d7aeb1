package daemon

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
	"github.com/forgeyard/forgeyard/internal/link"
	"github.com/forgeyard/forgeyard/internal/protocol"
	"github.com/forgeyard/forgeyard/internal/telemetry"
	"github.com/forgeyard/forgeyard/internal/transport/quic"
)

// Where a daemon listens when nothing is said.
const (
	DefaultListen = "0.0.0.0:7443" // UDP, for agents
	DefaultHTTP   = "127.0.0.1:7480"
	DefaultSocket = "http.sock"
)

// NoHTTP as Config.HTTP leaves the socket in the folder as the only way in.
const NoHTTP = "none"

// Config is what a daemon is made of. Dir is required; zero fields have their default.
type Config struct {
	Dir     string            // the daemon's folder; made if it is not there
	Listen  string            // host:port for agents; DefaultListen
	Names   []string          // DNS names and addresses by which agents may ask for it, besides the cluster's own
	HTTP    string            // host:port of the interface; DefaultHTTP, or NoHTTP
	Socket  string            // name of the interface's socket in Dir; DefaultSocket, by which others find the daemon
	Policy  forge.LeasePolicy // forge.DefaultLeasePolicy
	Version string            // of this program, for people
	Log     *slog.Logger      // nil: silent
	Metrics *telemetry.Metrics
	// Objects bounds the content store.
	Objects ObjectLimits
	// Terms are the versions of the protocol that are spoken; zero are all that this build knows.
	Terms protocol.Terms
	// Lifetime is that of the certificates that runners get; zero is trust.RunnerLifetime.
	Lifetime time.Duration
	// Spread is the time within which agents are asked to come back after a stop; zero has a default.
	Spread time.Duration
	// Link and QUIC bound connections; zero fields have their defaults.
	Link link.Config
	QUIC quic.Options
}

// ObjectLimits bound the content store. Nothing in it is deleted yet: what does not fit is refused.
type ObjectLimits struct {
	MaxBytes forge.Bytes // of all objects; zero: no bound but the disk
	MinFree  forge.Bytes // of the disk, left for the database and the logs; zero is objects.DefaultMinFree
}

// withDefaults fills in what is not said.
func (c Config) withDefaults() Config {
	if c.Listen == "" {
		c.Listen = DefaultListen
	}
	if c.HTTP == "" {
		c.HTTP = DefaultHTTP
	}
	if c.Socket == "" {
		c.Socket = DefaultSocket
	}
	if c.Policy == (forge.LeasePolicy{}) {
		c.Policy = forge.DefaultLeasePolicy()
	}
	if c.Version == "" {
		c.Version = "devel"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Metrics == nil {
		c.Metrics = telemetry.NewMetrics()
	}
	return c
}

// Validate checks what can be checked without opening anything.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	if c.Dir == "" {
		errs = append(errs, errors.New("the daemon's folder is missing: name one"))
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		errs = append(errs, fmt.Errorf("the address for agents: %w: write HOST:PORT", err))
	}
	if _, _, err := net.SplitHostPort(c.HTTP); err != nil && c.HTTP != NoHTTP {
		errs = append(errs, fmt.Errorf("the address of the HTTP interface: %w: write HOST:PORT", err))
	}
	if err := c.Policy.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("the lease policy: %w", err))
	}
	if c.Lifetime < 0 {
		errs = append(errs, fmt.Errorf("the lifetime of certificates is below zero: %v", c.Lifetime))
	}
	return errors.Join(errs...)
}

// onlyHere reports whether an address can be reached from this machine alone.
func onlyHere(addr net.Addr) bool {
	ip, err := netip.ParseAddrPort(addr.String())
	return err == nil && ip.Addr().Unmap().IsLoopback()
}

// changed lists the settings in which two configurations differ and that are read at a start only.
func (c Config) changed(next Config) []string {
	a, b := c.withDefaults(), next.withDefaults()
	var names []string
	for _, field := range []struct {
		name string
		same bool
	}{
		{"data_dir", a.Dir == b.Dir},
		{"agent_transport.listen", a.Listen == b.Listen},
		{"http.listen", a.HTTP == b.HTTP},
		{"lease", a.Policy == b.Policy},
		{"cas", a.Objects == b.Objects},
		{"lifetime", a.Lifetime == b.Lifetime},
	} {
		if !field.same {
			names = append(names, field.name)
		}
	}
	return names
}
