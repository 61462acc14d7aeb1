package config

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/forgeyard/forgeyard/internal/forge"
)

// Daemon is the settings of forgeyard-daemon. What each means stands in default/daemon.yaml, for operators, and in
// docs/configuration.md, which is made from that.
type Daemon struct {
	DataDir        string         `key:"data_dir"`
	AgentTransport AgentTransport `key:"agent_transport"`
	HTTP           HTTP           `key:"http"`
	Lease          Lease          `key:"lease"`
	CAS            CAS            `key:"cas"`
	Log            Log            `key:"log"`
}

// AgentTransport is where and how the daemon listens for agents (09§280).
type AgentTransport struct {
	Listen      string   `key:"listen"`
	Names       []string `key:"names"`
	ProtocolMin Protocol `key:"protocol_min"`
	ProtocolMax Protocol `key:"protocol_max"`
}

// Protocol is a version of the agent protocol. Both zero means that nothing is configured.
type Protocol struct {
	Major uint16 `key:"major"`
	Minor uint16 `key:"minor"`
}

// HTTP is where the API is served.
type HTTP struct {
	Listen string `key:"listen"`
}

// Lease is the time scale of leases (D08).
type Lease struct {
	TTL       time.Duration `key:"ttl"`
	Grace     time.Duration `key:"grace"`
	Renew     time.Duration `key:"renew"`
	Margin    time.Duration `key:"margin"`
	KillLead  time.Duration `key:"kill_lead"`
	SoftGrace time.Duration `key:"soft_grace"`
	OfferTTL  time.Duration `key:"offer_ttl"`
	Request   time.Duration `key:"request"`
}

// CAS is the store of objects: sources of jobs, and what they leave.
type CAS struct {
	MaxBytes forge.Bytes `key:"max_bytes"`
	MinFree  forge.Bytes `key:"min_free"`
}

// Policy returns the settings as the domain speaks of them.
func (l Lease) Policy() forge.LeasePolicy {
	return forge.LeasePolicy{
		TTL: l.TTL, Grace: l.Grace, Renew: l.Renew, Margin: l.Margin, KillLead: l.KillLead, SoftGrace: l.SoftGrace,
		OfferTTL: l.OfferTTL, Request: l.Request,
	}
}

// Log is what the program says about itself, and where.
type Log struct {
	Level   string      `key:"level" reload:"safe"`
	Format  string      `key:"format"`
	File    string      `key:"file"`
	MaxSize forge.Bytes `key:"max_size"`
	Keep    int         `key:"keep"`
}

// DefaultDaemon returns the built-in settings.
func DefaultDaemon() Daemon {
	d, err := LoadDaemon(Input{})
	if err != nil {
		panic("config: " + err.Error()) // our own defaults are wrong
	}
	return d
}

// Validate reports everything that is wrong with the settings, as forge.Problems.
func (d *Daemon) Validate() error { return asError(d.problems()) }

func asError(ps forge.Problems) error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}

// A check gathers what is wrong.
type check struct{ found forge.Problems }

func (c *check) wrong(key, format string, args ...any) {
	c.found = append(c.found, forge.Problem{Path: key, What: fmt.Sprintf(format, args...)})
}

func (d *Daemon) problems() forge.Problems {
	var c check
	c.folder("data_dir", d.DataDir)
	c.listen("agent_transport.listen", d.AgentTransport.Listen)
	for i, name := range d.AgentTransport.Names {
		if !hostName(name) {
			c.wrong(fmt.Sprintf("agent_transport.names[%d]", i), "%q is neither a host name nor an address, both without a port", clip(name))
		}
	}
	low, high := d.AgentTransport.ProtocolMin, d.AgentTransport.ProtocolMax
	if low != (Protocol{}) && high != (Protocol{}) && (low.Major > high.Major || low.Major == high.Major && low.Minor > high.Minor) {
		c.wrong("agent_transport.protocol_min", "is above agent_transport.protocol_max")
	}
	c.listen("http.listen", d.HTTP.Listen)
	if err := d.Lease.Policy().Validate(); err != nil {
		c.wrong("lease", "%v", err)
	}
	if d.CAS.MinFree < minFree {
		c.wrong("cas.min_free", "%v is below %v, without which the database and the logs have no room", d.CAS.MinFree, minFree)
	}
	c.log(d.Log)
	return c.found
}

// minFree is the least that objects may leave free of the daemon's disk.
const minFree = 16 * forge.MiB

func (c *check) folder(key, path string) {
	if path == "" || !filepath.IsAbs(path) {
		c.wrong(key, "%q is not an absolute path", clip(path))
	}
}

// listen checks an address to listen on: a port, and before it an address of this machine or nothing.
func (c *check) listen(key, address string) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		c.wrong(key, `%q is not an address with a port, as in "127.0.0.1:7480" or "[::]:7443"`, clip(address))
		return
	}
	if host != "" && !hostName(host) {
		c.wrong(key, "%q is no host", clip(host))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		c.wrong(key, "%q is not a port from 0 to 65535", clip(port))
	}
}

// hostName reports whether s can be a host name or an IP address.
func hostName(s string) bool {
	const longest = 253
	if net.ParseIP(s) != nil {
		return true
	}
	for _, r := range s {
		if !(r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z') {
			return false
		}
	}
	return s != "" && len(s) <= longest && s[0] != '-' && s[0] != '.'
}

// Bounds of the program's own log files.
const (
	minLogSize = 64 * forge.KiB
	maxLogSize = 1 * forge.GiB
	maxLogKeep = 100
)

func (c *check) log(l Log) {
	if levels := []string{"debug", "info", "warn", "error"}; !slices.Contains(levels, l.Level) {
		c.wrong("log.level", "%q is no level; use debug, info, warn or error", clip(l.Level))
	}
	if formats := []string{"auto", "text", "json"}; !slices.Contains(formats, l.Format) {
		c.wrong("log.format", "%q is no format; use auto, text or json", clip(l.Format))
	}
	if l.File != "" {
		c.folder("log.file", l.File)
	}
	if l.MaxSize < minLogSize || l.MaxSize > maxLogSize {
		c.wrong("log.max_size", "%v is not from %v to %v", l.MaxSize, minLogSize, maxLogSize)
	}
	if l.Keep < 0 || l.Keep > maxLogKeep {
		c.wrong("log.keep", "%d is not from 0 to %d", l.Keep, maxLogKeep)
	}
}
